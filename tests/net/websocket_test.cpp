#include "net/server.hpp"
#include "scripted_upstream.hpp"
#include "socket_client.hpp"

namespace troupe::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A WebSocket client that writes its frames by hand (RFC 6455, 5.2), masked with zeros.
class websocket_client {
 public:
  explicit websocket_client(std::uint16_t port) : socket_(port) {
    socket_.send(
        "GET /v1/stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Request-Id: conn\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    greeting = socket_.read_until("\r\n\r\n");
  }

  static constexpr unsigned char text = 0x81, text_begin = 0x01, continuation = 0x00, binary = 0x82, ping = 0x89;
  void send_frame(unsigned char opcode, std::string_view payload) {
    socket_.send(header(opcode, payload.size()) + std::string(payload));
  }
  void send(std::string_view message) { send_frame(text, message); }
  void announce(std::uint64_t bytes) { socket_.send(header(text, bytes)); }

  struct frame {
    unsigned char opcode = 0;
    std::string payload;
    unsigned close_code() const {
      return payload.size() < 2 ? 0
                                : static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
    }
  };
  frame receive_frame() {
    const std::string head = socket_.read_exactly(2);
    if (head.size() < 2) return {};
    std::size_t size = static_cast<unsigned char>(head[1]);
    if (size == 126) {
      const std::string more = socket_.read_exactly(2);
      size = static_cast<unsigned char>(more[0]) << 8 | static_cast<unsigned char>(more[1]);
    }
    return {static_cast<unsigned char>(head[0]), socket_.read_exactly(size)};
  }
  json::object receive() { return object_of(receive_frame().payload); }
  void close() { socket_.close(); }

  std::string greeting;

 private:
  static std::string header(unsigned char opcode, std::uint64_t size) {
    std::string bytes(1, static_cast<char>(opcode));
    const auto append = [&](int count) {
      for (int i = count - 1; i >= 0; --i) bytes += static_cast<char>(size >> (8 * i));
    };
    if (size < 126) {
      bytes += static_cast<char>(0x80 | size);
    } else if (size < 65536) {
      bytes += static_cast<char>(0x80 | 126);
      append(2);
    } else {
      bytes += static_cast<char>(0x80 | 127);
      append(8);
    }
    return bytes + std::string(4, '\0');
  }

  socket_client socket_;
};

class WebSocket : public testing::Test {
 protected:
  void listen() {
    settings.server.port = 0;
    auto made = server::listen(settings, actors.calls());
    ASSERT_TRUE(made);
    daemon = *std::move(made);
  }
  template <class Condition>
  static void eventually(Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit);
      std::this_thread::yield();
    }
  }

  config::settings settings;
  scripted_upstream actors;
  std::unique_ptr<server> daemon;
};

TEST_F(WebSocket, CarriesSeveralRequestsToldApartByTheirIds) {
  listen();
  websocket_client client(daemon->port());
  EXPECT_THAT(client.greeting, testing::AllOf(StartsWith("HTTP/1.1 101"), HasSubstr("X-Request-Id: conn")));
  client.send(R"({"type":"generate","id":"a","prompt":"x"})");
  client.send(R"({"type":"chat","id":"b","messages":[{"role":"user","content":"x"}]})");
  auto& a = actors.wait_for(0);
  auto& b = actors.wait_for(1);
  EXPECT_EQ(a.request.external_id, "conn:a");
  b.sink(started());
  EXPECT_EQ(text_at(client.receive(), "/id"), "\"b\"");
  EXPECT_EQ(text_at(client.receive(), "/data/choices/0/delta/role"), "\"assistant\"");
  a.sink(started());
  a.sink(delta(0, "one"));
  EXPECT_EQ(text_at(client.receive(), "/type"), "\"started\"");
  EXPECT_EQ(text_at(client.receive(), "/data/text"), "\"one\"");
  a.sink(finished(0));
  a.sink(done(1, 1));
  EXPECT_EQ(text_at(client.receive(), "/data/finish_reason"), "\"stop\"");
  EXPECT_EQ(json::serialize(client.receive()), R"({"type":"done","id":"a"})");
  client.send(R"({"type":"generate","id":"a","prompt":"again"})");  // The id is free again.
  actors.wait_for(2);
  b.sink(actors::generation_failed{{error_kind::deadline_exceeded, "too late", "executor"}, {}});
  EXPECT_EQ(text_at(client.receive(), "/error/stage"), "\"executor\"");
}

TEST_F(WebSocket, GivesAWholeAnswerWhenNoStreamIsWanted) {
  actors.answer_at_once = true;
  listen();
  websocket_client client(daemon->port());
  client.send(R"({"type":"completion","id":"a","prompt":"x","stream":false})");
  EXPECT_EQ(text_at(client.receive(), "/type"), "\"started\"");
  const auto result = client.receive();
  EXPECT_EQ(text_at(result, "/type"), "\"result\"");
  EXPECT_EQ(text_at(result, "/data/choices/0/text"), "\"Hello world\"");
}

TEST_F(WebSocket, CancelsOneRequestAndGoesOn) {
  listen();
  websocket_client client(daemon->port());
  client.send(R"({"type":"generate","id":"a","prompt":"x"})");
  client.send(R"({"type":"generate","id":"b","prompt":"x"})");
  auto& a = actors.wait_for(0);
  auto& b = actors.wait_for(1);
  client.send(R"({"type":"cancel","id":"a"})");
  EXPECT_EQ(json::serialize(client.receive()), R"({"type":"cancelled","id":"a"})");
  EXPECT_TRUE(a.request.cancel.cancelled());
  EXPECT_FALSE(b.request.cancel.cancelled());
  a.sink(started());
  b.sink(started());
  EXPECT_EQ(text_at(client.receive(), "/id"), "\"b\"");
  client.send(R"({"type":"cancel","id":"a"})");
  EXPECT_EQ(text_at(client.receive(), "/status"), "404");
}

TEST_F(WebSocket, GivesTheRoomOfAnEndedStreamBackToTheOthers) {
  listen();
  websocket_client client(daemon->port());
  client.send(R"({"type":"generate","id":"a","prompt":"x"})");
  client.send(R"({"type":"generate","id":"b","prompt":"x"})");
  auto& a = actors.wait_for(0);
  auto& b = actors.wait_for(1);
  client.send(R"({"type":"cancel","id":"a"})");
  EXPECT_EQ(text_at(client.receive(), "/type"), "\"cancelled\"");
  a.sink(started());  // was on its way
  a.sink(delta(0, "one"));
  b.sink(started());
  b.sink(delta(0, "two"));
  b.sink(actors::generation_failed{{error_kind::internal, "broken", "executor"}, {}});
  b.sink(delta(0, "three"));
  EXPECT_EQ(text_at(client.receive(), "/type"), "\"started\"");
  EXPECT_EQ(a.request.window, b.request.window);
  eventually([&] { return b.request.window->held() == 0; });
}

TEST_F(WebSocket, CancelsEverythingWhenTheClientGoesAway) {
  listen();
  websocket_client client(daemon->port());
  client.send(R"({"type":"generate","id":"a","prompt":"x"})");
  auto& a = actors.wait_for(0);
  client.close();
  eventually([&] { return a.request.cancel.cancelled(); });
}

TEST_F(WebSocket, AnswersFaultyMessagesWithErrorsAndGoesOn) {
  listen();
  websocket_client client(daemon->port());
  client.send("{bad");
  EXPECT_EQ(text_at(client.receive(), "/status"), "400");
  client.send_frame(websocket_client::binary, "{}");
  EXPECT_THAT(text_at(client.receive(), "/error/message"), HasSubstr("text"));
  client.send(R"({"type":"generate","id":"a","prompt":"x","temperature":9})");
  const auto failure = client.receive();
  EXPECT_EQ(text_at(failure, "/id"), "\"a\"");
  EXPECT_EQ(text_at(failure, "/error/param"), "\"temperature\"");
  client.send(R"({"type":"ping"})");
  EXPECT_EQ(json::serialize(client.receive()), R"({"type":"pong"})");
  client.send_frame(websocket_client::ping, "are you there");
  EXPECT_EQ(client.receive_frame().payload, "are you there");
}

TEST_F(WebSocket, LimitsRequestsInFlightAndRefusesAnIdInUse) {
  settings.server.max_streams = 2;
  listen();
  websocket_client client(daemon->port());
  client.send(R"({"type":"generate","id":"a","prompt":"x"})");
  client.send(R"({"type":"generate","id":"a","prompt":"x"})");
  const auto refused = client.receive();
  EXPECT_EQ(text_at(refused, "/error/param"), "\"id\"");
  EXPECT_EQ(text_at(refused, "/id"), "null") << "the first request goes on";
  client.send(R"({"type":"generate","id":"b","prompt":"x"})");
  client.send(R"({"type":"generate","id":"c","prompt":"x"})");
  EXPECT_EQ(text_at(client.receive(), "/status"), "503");
}

TEST_F(WebSocket, RefusesHandshakesThatAreNone) {
  listen();
  const auto greeting_for = [&](const std::string& version, const std::string& key) {
    socket_client client(daemon->port());
    client.send("GET /v1/stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + version + key +
                "\r\n");
    return client.read_until("\r\n\r\n");
  };
  const std::string version = "Sec-WebSocket-Version: 13\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  EXPECT_THAT(greeting_for(version, key), StartsWith("HTTP/1.1 101"));
  const auto refused = testing::AllOf(StartsWith("HTTP/1.1 426"), HasSubstr("Content-Type: application/json"),
                                      HasSubstr("Sec-WebSocket-Version: 13"));
  EXPECT_THAT(greeting_for("Sec-WebSocket-Version: 8\r\n", key), refused);
  EXPECT_THAT(greeting_for(version, ""), refused);
  for (const char* wrong : {"x", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ!=", "dGhlIHNhbXBsZSBub25jZXh4"})
    EXPECT_THAT(greeting_for(version, "Sec-WebSocket-Key: " + std::string(wrong) + "\r\n"), refused) << wrong;
}

TEST_F(WebSocket, StreamsWhereNullStandsForWhatIsLeftOut) {
  actors.answer_at_once = true;
  listen();
  websocket_client client(daemon->port());
  client.send(R"({"type":"completion","id":"a","prompt":"x","stream":null})");
  EXPECT_EQ(text_at(client.receive(), "/type"), "\"started\"");
  EXPECT_EQ(text_at(client.receive(), "/type"), "\"chunk\"");
}

TEST_F(WebSocket, ClosesPolitelyOverAMessageThatIsTooLong) {
  settings.server.max_body_bytes = 1024;
  listen();
  websocket_client whole(daemon->port());
  whole.send(std::string(1025, 'x'));
  EXPECT_EQ(whole.receive_frame().close_code(), 1009U);

  websocket_client fragments(daemon->port());
  fragments.send_frame(websocket_client::text_begin, std::string(11, 'x'));
  for (int i = 0; i < 99; ++i) fragments.send_frame(websocket_client::continuation, std::string(11, 'x'));
  EXPECT_EQ(fragments.receive_frame().close_code(), 1009U);

  websocket_client announced(daemon->port());
  announced.announce(std::uint64_t{1} << 62);
  EXPECT_EQ(announced.receive_frame().close_code(), 1009U);

  websocket_client garbled(daemon->port());
  garbled.send("\xff\xfe");
  EXPECT_EQ(garbled.receive_frame().close_code(), 1007U);
}

TEST_F(WebSocket, SaysGoodbyeWhenTheServerDrains) {
  listen();
  websocket_client idle(daemon->port());
  websocket_client busy(daemon->port());
  busy.send(R"({"type":"generate","id":"a","prompt":"x"})");
  auto& a = actors.wait_for(0);
  daemon->stop_accepting();
  EXPECT_EQ(idle.receive_frame().close_code(), 1001U);
  a.sink(started());
  a.sink(finished(0));
  a.sink(done(1, 0));
  EXPECT_EQ(text_at(busy.receive(), "/type"), "\"started\"");
  EXPECT_EQ(text_at(busy.receive(), "/type"), "\"chunk\"");
  EXPECT_EQ(text_at(busy.receive(), "/type"), "\"done\"");
  EXPECT_EQ(busy.receive_frame().close_code(), 1001U);
}

}  // namespace
}  // namespace troupe::net
