#include "net/http/request_reader.hpp"

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

wire_error failure(unsigned status, std::string code, std::string message) {
  return {.status = status, .code = std::move(code), .message = std::move(message)};
}

wire_error explain(const beast::error_code& ec, const request_limits& limits) {
  if (ec == http::error::header_limit)
    return failure(431, "header_too_large",
                   "the request's header is larger than " + std::to_string(limits.header_bytes) + " bytes");
  if (ec == http::error::body_limit)
    return failure(413, "request_too_large",
                   "the request's body is larger than " + std::to_string(limits.body_bytes) + " bytes");
  if (ec == http::error::bad_version) return failure(505, "bad_version", "only HTTP/1.0 and HTTP/1.1 are spoken here");
  return failure(400, "bad_request", "the request is not well-formed HTTP: " + ec.message());
}

/// What Beast lets pass and RFC 9112 does not.
std::optional<wire_error> check_header(const http::request_header<>& header, bool chunked) {
  const auto codings = header.equal_range(http::field::transfer_encoding);
  if (codings.first != codings.second) {
    if (header.version() < 11) return failure(400, "bad_request", "HTTP/1.0 has no Transfer-Encoding");
    if (!chunked || std::next(codings.first) != codings.second || !beast::iequals(codings.first->value(), "chunked"))
      return failure(501, "bad_transfer_encoding", "the only transfer coding known here is chunked");
  }
  if (header.version() >= 11 && header.count(http::field::host) != 1)
    return failure(400, "bad_request", "a request must have exactly one Host header");
  if (const auto expected = header[http::field::expect]; !expected.empty() && !beast::iequals(expected, "100-continue"))
    return failure(417, "expectation_failed", "the only expectation known here is 100-continue");
  return std::nullopt;
}

http_request convert(http::request<http::string_body> message) {
  http_request out;
  out.method = text_of(message.method_string());
  out.target = text_of(message.target());
  out.version_1_1 = message.version() >= 11;
  out.keep_alive = message.keep_alive();
  out.wants_upgrade = beast::websocket::is_upgrade(message);
  for (const auto& field : message) out.headers.emplace_back(text_of(field.name_string()), text_of(field.value()));
  out.body = std::move(message.body());
  return out;
}

}  // namespace

struct request_reader::parts {
  request_limits limits;
  beast::flat_buffer buffer;
  std::optional<parser_type> parser;
  bool header_checked = false;
};

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
  auto& [limits, buffer, parser, header_checked] = *parts_;
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
  }

  while (!parser->is_done()) {
    if (parser->is_header_done() && !header_checked) {
      header_checked = true;
      if (auto fault = check_header(parser->get(), parser->chunked())) return *fault;
      if (!parser->get()[http::field::expect].empty() && buffer.size() == 0) return expects_continue{};
    }
    if (buffer.size() == 0) return need_more{};
    beast::error_code ec;
    buffer.consume(parser->put(buffer.cdata(), ec));
    if (ec == http::error::need_more) return need_more{};
    if (ec) return explain(ec, limits);
  }
  if (!header_checked)
    if (auto fault = check_header(parser->get(), parser->chunked())) return *fault;
  http_request done = convert(parser->release());
  parser.reset();
  return done;
}

}  // namespace troupe::net
