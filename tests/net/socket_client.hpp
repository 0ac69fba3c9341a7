#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe::net {

/// A blocking client on a plain socket, so that a test can send bytes that no HTTP library would.
class socket_client {
 public:
  explicit socket_client(std::uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect");
  }
  ~socket_client() { close(); }
  socket_client(const socket_client&) = delete;
  socket_client& operator=(const socket_client&) = delete;

  /// False when the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// What has come when `end` is seen in it, including `end`; all when the server closes.
  std::string read_until(std::string_view end) {
    std::size_t found = std::string::npos;
    while ((found = received_.find(end)) == std::string::npos) {
      if (!receive()) return std::exchange(received_, {});
    }
    std::string text = received_.substr(0, found + end.size());
    received_.erase(0, found + end.size());
    return text;
  }
  std::string read_exactly(std::size_t bytes) {
    while (received_.size() < bytes)
      if (!receive()) return std::exchange(received_, {});
    std::string text = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return text;
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }
  /// One response with Content-Length: head and body.
  std::string read_response() {
    const std::string head = read_until("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    return head + read_exactly(std::stoul(head.substr(at + 16)));
  }

  /// Whether the server closes without another byte.
  bool closed_by_server() {
    char byte = 0;
    return ::recv(fd_, &byte, 1, 0) == 0;
  }

  void close_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  bool receive() {
    char buffer[65536];
    const auto bytes = ::recv(fd_, buffer, sizeof buffer, 0);
    if (bytes <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(bytes));
    return true;
  }

  int fd_;
  std::string received_;
};

}  // namespace troupe::net
