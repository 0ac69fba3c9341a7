#include "net/http/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace troupe::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// A header's value never ends its line, whatever a client's request id or a model's name holds.
void append_header(std::string& head, std::string_view name, std::string_view value) {
  head += name;
  head += ": ";
  for (const char c : value) head += (c == '\r' || c == '\n') ? ' ' : c;
  head += "\r\n";
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// Cuts the first element off a list; a comma in a quoted string is part of one (RFC 9110, 5.6).
std::string_view take_element(std::string_view& list) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < list.size() && (quoted || list[end] != ','); ++end) {
    if (list[end] == '"') quoted = !quoted;
    if (quoted && list[end] == '\\') ++end;
  }
  const std::string_view element = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return trimmed(element);
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view http_request::header(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return equal_ignoring_case(h.first, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

bool http_request::has_directive(std::string_view name, std::string_view directive) const {
  for (const auto& [header, value] : headers) {
    if (!equal_ignoring_case(header, name)) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view element = take_element(rest);
      if (equal_ignoring_case(element.substr(0, element.find('=')), directive)) return true;
    }
  }
  return false;
}

std::string_view http_request::path() const {
  const std::string_view all = target;
  return all.substr(0, all.find('?'));
}

std::string response_head(const http_response& response, body_framing framing, std::size_t length, bool keep_alive) {
  std::string head =
      "HTTP/1.1 " + std::to_string(response.status) + " " + std::string(reason_phrase(response.status)) + "\r\n";
  if (!response.content_type.empty()) append_header(head, "Content-Type", response.content_type);
  if (framing == body_framing::content_length) append_header(head, "Content-Length", std::to_string(length));
  if (framing == body_framing::chunked) append_header(head, "Transfer-Encoding", "chunked");
  append_header(head, "Connection", keep_alive ? "keep-alive" : "close");
  append_header(head, "Server", "troupe");
  for (const auto& [name, value] : response.headers) append_header(head, name, value);
  return head + "\r\n";
}

std::string chunk_of(std::string_view bytes) {
  char size[20];
  const auto end = std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr;
  std::string chunk(size, end);
  chunk += "\r\n";
  chunk += bytes;
  chunk += "\r\n";
  return chunk;
}

std::string_view reason_phrase(unsigned status) {
  static constexpr std::array<std::pair<unsigned, std::string_view>, 22> phrases{{
      {100, "Continue"},
      {101, "Switching Protocols"},
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {426, "Upgrade Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  }};
  const auto found = std::find_if(phrases.begin(), phrases.end(), [&](const auto& p) { return p.first == status; });
  return found == phrases.end() ? "Unknown" : found->second;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace troupe::net
