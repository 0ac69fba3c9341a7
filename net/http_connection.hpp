#pragma once

#include <boost/asio/ip/tcp.hpp>

namespace troupe::net {

class gateway;

/// Serves HTTP/1.1 on an accepted socket until either side ends it. On the gateway's thread.
void start_http(gateway& owner, boost::asio::ip::tcp::socket socket);

}  // namespace troupe::net
