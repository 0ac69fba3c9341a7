#include "net/http/request_reader.hpp"

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <optional>

namespace troupe::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

using parser_type = http::request_parser<http::string_body>;

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

wire_error explain(const beast::error_code& ec, const request_limits& limits) {
  if (ec == http::error::header_limit)
    return wire_error{431, "header_too_large",
                      "the request's header is larger than " + std::to_string(limits.header_bytes) + " bytes"};
  if (ec == http::error::body_limit)
    return wire_error{413, "request_too_large",
                      "the request's body is larger than " + std::to_string(limits.body_bytes) + " bytes"};
  if (ec == http::error::bad_version)
    return wire_error{505, "bad_version", "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  return wire_error{400, "bad_request", "the request is not well-formed HTTP: " + ec.message()};
}

/// What Beast lets pass and RFC 9112 does not.
std::optional<wire_error> check_header(const http::request_header<>& header, bool chunked) {
  const auto codings = header.equal_range(http::field::transfer_encoding);
  if (codings.first != codings.second) {
    if (header.version() < 11) return wire_error{400, "bad_request", "HTTP/1.0 has no Transfer-Encoding"};
    if (!chunked || std::next(codings.first) != codings.second || !beast::iequals(codings.first->value(), "chunked"))
      return wire_error{501, "bad_transfer_encoding", "the only transfer coding known here is chunked"};
  }
  if (header.version() >= 11 && header.count(http::field::host) != 1)
    return wire_error{400, "bad_request", "a request must have exactly one Host header"};
  if (const auto expected = header[http::field::expect]; !expected.empty() && !beast::iequals(expected, "100-continue"))
    return wire_error{417, "expectation_failed", "the only expectation known here is 100-continue"};
  return std::nullopt;
}

/// A target that names the whole URL, as clients send it to proxies, becomes its path (RFC 9112, 3.2.2).
std::string_view origin_form(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    break;
  }
  return target;
}

/// All but the body.
http_request convert(const http::request_header<>& header, bool keep_alive) {
  http_request out;
  out.method = text_of(header.method_string());
  out.target = origin_form({header.target().data(), header.target().size()});
  if (!out.target.starts_with('/') && out.target != "*") out.target.insert(0, "/");
  out.version_1_1 = header.version() >= 11;
  out.keep_alive = keep_alive;
  for (const auto& field : header) out.headers.emplace_back(text_of(field.name_string()), text_of(field.value()));
  return out;
}

/// Bytes around a chunked body of `body` bytes: enough for chunks of one byte with a short extension each, and for
/// trailers as large as a header.
std::uint64_t most_framing(const request_limits& limits, std::uint64_t body) { return limits.header_bytes + 16 * body; }

}  // namespace

struct request_reader::parts {
  request_limits limits;
  beast::flat_buffer buffer;
  std::optional<parser_type> parser;
  bool header_checked = false;
  http_request request;  ///< From its header alone: trailers must not change what it means (RFC 9110, 6.5.1).
  std::uint64_t body_received = 0;  ///< Bytes after the header, framing included.

  std::optional<wire_error> take_header();
  std::optional<wire_error> check_framing(std::size_t unparsed) const;
};

/// What RFC 6455, 4.2.1, asks for: the version, and 16 bytes in base64 as the key.
template <class Message>
bool is_websocket_handshake(const Message& message) {
  constexpr std::string_view base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto key = message[beast::http::field::sec_websocket_key];
  return beast::websocket::is_upgrade(message) && message[beast::http::field::sec_websocket_version] == "13" &&
         key.size() == 24 && std::string_view(key.data(), key.size()).find_first_not_of(base64) == 22 &&
         key.substr(22) == "==";
}

std::optional<wire_error> request_reader::parts::take_header() {
  header_checked = true;
  const auto& message = parser->get();
  if (auto fault = check_header(message, parser->chunked())) return fault;
  request = convert(message, message.keep_alive());
  request.wants_upgrade = is_websocket_handshake(message);
  return std::nullopt;
}

/// Beast bounds a chunked body, but neither chunk extensions nor trailers, of which it keeps each unfinished one.
std::optional<wire_error> request_reader::parts::check_framing(std::size_t unparsed) const {
  if (!parser->is_header_done() || !parser->chunked()) return std::nullopt;
  const std::uint64_t body = parser->get().body().size();
  if (body_received + unparsed - body <= most_framing(limits, body)) return std::nullopt;
  return wire_error{431, "header_too_large", "the chunks' extensions or trailers are too large"};
}

request_reader::request_reader(request_limits limits) : parts_(std::make_unique<parts>()) { parts_->limits = limits; }
request_reader::~request_reader() = default;

void request_reader::add(std::string_view bytes) {
  auto& buffer = parts_->buffer;
  buffer.commit(asio::buffer_copy(buffer.prepare(bytes.size()), asio::buffer(bytes.data(), bytes.size())));
}

request_reader::phase request_reader::where() const {
  if (parts_->parser) return parts_->parser->is_header_done() ? phase::body : phase::header;
  return parts_->buffer.size() > 0 ? phase::header : phase::idle;
}

request_reader::step request_reader::next() {
  auto& [limits, buffer, parser, header_checked, request, body_received] = *parts_;
  if (!parser) {
    // An empty line before a request is ignored (RFC 9112, 2.2).
    while (buffer.size() > 0 && (*static_cast<const char*>(buffer.cdata().data()) == '\r' ||
                                 *static_cast<const char*>(buffer.cdata().data()) == '\n'))
      buffer.consume(1);
    if (buffer.size() == 0) return need_more{};
    parser.emplace();
    parser->header_limit(limits.header_bytes);
    parser->body_limit(limits.body_bytes);
    header_checked = false;
    body_received = 0;
  }

  while (!parser->is_done()) {
    if (parser->is_header_done() && !header_checked) {
      if (auto fault = parts_->take_header()) return *fault;
      if (!parser->get()[http::field::expect].empty() && buffer.size() == 0) return expects_continue{};
    }
    if (buffer.size() == 0) return need_more{};
    beast::error_code ec;
    const std::size_t taken = parser->put(buffer.cdata(), ec);
    buffer.consume(taken);
    if (header_checked) body_received += taken;
    const bool starved = ec == http::error::need_more;
    if (ec && !starved) return explain(ec, limits);
    if (auto fault = parts_->check_framing(starved ? buffer.size() : 0)) return *fault;
    if (starved) return need_more{};
  }
  if (!header_checked)
    if (auto fault = parts_->take_header()) return *fault;
  request.body = std::move(parser->get().body());
  parser.reset();
  return std::move(request);
}

}  // namespace troupe::net
