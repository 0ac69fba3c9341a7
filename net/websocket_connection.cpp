#include "net/gateway.hpp"

namespace troupe::net {

void start_websocket(gateway&, boost::asio::ip::tcp::socket, const http_request&, std::string) {}

}  // namespace troupe::net
