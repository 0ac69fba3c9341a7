#include "net/server.hpp"

#include <future>

#include "scripted_upstream.hpp"
#include "socket_client.hpp"

namespace troupe::net {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Server : public testing::Test {
 protected:
  void listen() { listen(actors.calls()); }
  void listen(upstream calls) {
    settings.server.port = 0;
    auto made = server::listen(settings, std::move(calls));
    ASSERT_TRUE(made) << made.error().to_string();
    daemon = *std::move(made);
  }
  socket_client connect() { return socket_client(daemon->port()); }
  std::string exchange_of(std::string_view request) {
    socket_client client(daemon->port());
    client.send(request);
    return client.read_response();
  }

  config::settings settings;
  scripted_upstream actors;
  std::unique_ptr<server> daemon;
};

std::string get(std::string_view path, std::string_view headers = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n";
}
std::string post(std::string_view path, std::string_view body, std::string_view headers = {}) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
         std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
constexpr auto generate = R"({"prompt":"Hi","temperature":0})";
constexpr auto generate_stream = R"({"prompt":"Hi","temperature":0,"stream":true})";

/// Spins until `condition`, which another thread is about to make true.
template <class Condition>
void eventually(Condition condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    std::this_thread::yield();
  }
}

TEST_F(Server, AnswersManyRequestsOnOneConnection) {
  listen();
  socket_client client(daemon->port());
  for (int i = 0; i < 50; ++i) {
    client.send(get("/health"));
    EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
}

TEST_F(Server, SaysThatAPortIsTakenAndWhatToDo) {
  listen();
  config::settings same = settings;
  same.server.port = daemon->port();
  scripted_upstream other;
  auto second = server::listen(same, other.calls());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, error_kind::io);
  EXPECT_THAT(second.error().message, HasSubstr("--port"));
  same.server.host = "no.such.host.invalid";
  EXPECT_FALSE(server::listen(same, other.calls()));
}

TEST_F(Server, ListensAtIpv4WhereANameHasSeveralAddresses) {
  settings.server.host = "localhost";
  listen();
  EXPECT_THAT(exchange_of(get("/health")), StartsWith("HTTP/1.1 200"));  // At 127.0.0.1.
  config::settings same = settings;
  same.server.port = daemon->port();
  const auto second = server::listen(same, scripted_upstream().calls());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another program uses the port"));
}

TEST_F(Server, AnswersPipelinedRequestsInTheirOrder) {
  listen();
  socket_client client(daemon->port());
  client.send(post("/generate", generate, "X-Request-Id: first\r\n") + get("/version", "X-Request-Id: second\r\n") +
              post("/generate", generate, "X-Request-Id: third\r\n"));
  auto& third = actors.wait_for(1);
  third.sink(started());
  third.sink(finished(0));
  third.sink(done(1, 0));
  auto& first = actors.wait_for(0);
  first.sink(started());
  first.sink(finished(0));
  first.sink(done(1, 0));
  EXPECT_THAT(client.read_response(), HasSubstr("X-Request-Id: first"));
  EXPECT_THAT(client.read_response(), HasSubstr("X-Request-Id: second"));
  EXPECT_THAT(client.read_response(), HasSubstr("X-Request-Id: third"));
}

TEST_F(Server, ReadsOnlyABoundedNumberOfRequestsAhead) {
  listen();
  socket_client client(daemon->port());
  std::string many;
  for (int i = 0; i < 40; ++i) many += post("/generate", generate);
  client.send(many);
  actors.wait_for(15);
  EXPECT_EQ(actors.count(), 16U);
  for (std::size_t i = 0; i < 40; ++i) {
    auto& request = actors.wait_for(i);
    request.sink(started());
    request.sink(finished(0));
    request.sink(done(1, 0));
    EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(Server, StreamsEventsAndKeepsTheConnection) {
  actors.answer_at_once = true;
  listen();
  socket_client client(daemon->port());
  for (int i = 0; i < 20; ++i) {
    client.send(post("/v1/completions", generate_stream));
    const std::string answer = client.read_until("\r\n0\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/event-stream"));
    EXPECT_THAT(answer, HasSubstr("X-Cache: miss"));
    EXPECT_THAT(answer, HasSubstr("data: [DONE]\n\n"));
  }
}

TEST_F(Server, StreamsToHttp10UntilItCloses) {
  actors.answer_at_once = true;
  listen();
  socket_client client(daemon->port());
  client.send("POST /generate HTTP/1.0\r\nContent-Length: " + std::to_string(std::string_view(generate_stream).size()) +
              "\r\n\r\n" + generate_stream);
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, Not(HasSubstr("Transfer-Encoding")));
  EXPECT_THAT(answer, testing::EndsWith("data: [DONE]\n\n"));
}

TEST_F(Server, RefusesInJsonBeforeAStreamBegins) {
  listen();
  EXPECT_THAT(exchange_of(post("/v1/completions", R"({"prompt":"Hi","stream":true,"n":0})")),
              testing::AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("\"param\":\"n\"")));
  socket_client client(daemon->port());
  client.send(post("/v1/completions", generate_stream));
  actors.wait_for(0).sink(actors::generation_failed{{error_kind::too_large, "prompt of 70 tokens", "prompt"}, {}});
  EXPECT_THAT(client.read_response(), testing::AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("application/json"),
                                                     HasSubstr("context_length_exceeded")));
  client.send(get("/health"));
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, EndsAFailedStreamWithAnErrorEventAndCloses) {
  listen();
  socket_client client(daemon->port());
  client.send(post("/v1/completions", generate_stream));
  auto& request = actors.wait_for(0);
  request.sink(started());
  request.sink(delta(0, "a"));
  request.sink(actors::generation_failed{{error_kind::internal, "executor failed", ""}, {}});
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, HasSubstr("data: {\"error\":{\"message\":\"executor failed\""));
  EXPECT_THAT(answer, Not(HasSubstr("[DONE]")));
}

TEST_F(Server, TellsHowLongToWaitWhenFull) {
  listen();
  socket_client client(daemon->port());
  client.send(post("/generate", generate));
  actors.wait_for(0).sink(actors::generation_failed{{error_kind::overloaded, "full", ""}, std::chrono::seconds{7}});
  EXPECT_THAT(client.read_response(), testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 7\r\n"),
                                                     HasSubstr("server_is_overloaded")));
}

TEST_F(Server, CancelsWhenTheClientGoesAway) {
  listen();
  for (const bool stream : {false, true}) {
    const std::size_t index = actors.count();
    socket_client client(daemon->port());
    client.send(post("/generate", stream ? generate_stream : generate));
    auto& request = actors.wait_for(index);
    if (stream) request.sink(started());
    EXPECT_FALSE(request.request.cancel.cancelled());
    client.close();
    eventually([&] { return request.request.cancel.cancelled(); });
  }
}

TEST_F(Server, CancelsForAHalfClosedClientButAnswersWhatIsReady) {
  listen();
  socket_client client(daemon->port());
  client.send(post("/generate", generate_stream));
  auto& request = actors.wait_for(0);
  request.sink(started());
  client.read_until("\r\n\r\n");
  client.close_sending();
  eventually([&] { return request.request.cancel.cancelled(); });
  socket_client other(daemon->port());
  other.send(get("/health"));
  other.close_sending();
  EXPECT_THAT(other.read_to_end(), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, AnswersAClientThatClosesItsSendingSideWithItsRequest) {
  listen();
  socket_client client(daemon->port());
  client.send(post("/generate", generate));
  client.close_sending();
  EXPECT_EQ(client.read_exactly(9), "HTTP/1.1 ");  // Comes at once, to see whether the client is there.
  auto& request = actors.wait_for(0);
  EXPECT_FALSE(request.request.cancel.cancelled());
  request.sink(started());
  request.sink(delta(0, "answer"));
  request.sink(finished(0));
  request.sink(done(1, 1));
  EXPECT_THAT(client.read_to_end(), testing::AllOf(StartsWith("200 OK\r\n"), HasSubstr("answer")));
}

TEST_F(Server, CancelsWhenAClientThatPipelinedTooMuchGoesAway) {
  listen();
  socket_client client(daemon->port());
  std::string many;
  for (int i = 0; i < 20; ++i) many += post("/generate", generate);
  client.send(many);
  auto& last = actors.wait_for(15);
  client.close();
  eventually([&] { return last.request.cancel.cancelled(); });
}

TEST_F(Server, PausesAStreamThatNobodyReads) {
  settings.server.stream_window_bytes = 64 << 10;
  listen();
  socket_client client(daemon->port(), 4096);
  client.send(post("/generate", generate_stream));
  auto& request = actors.wait_for(0);
  request.sink(started());
  const std::string piece(1000, 'x');
  std::size_t sent = 0;
  const auto& window = *request.request.window;
  // Whoever schedules would stop here; what the kernel takes meanwhile is bounded.
  while (!window.full()) {
    request.sink(delta(0, piece));
    ASSERT_LT(++sent, 100'000U);
  }
  request.sink(finished(0));
  request.sink(done(1, 1));
  const std::string answer = client.read_until("\r\n0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("data: [DONE]"));
  eventually([&] { return window.held() == 0; });
}

TEST_F(Server, DropsAClientThatTakesNothing) {
  settings.server.write_timeout = std::chrono::milliseconds(50);
  settings.server.stream_window_bytes = 64 << 10;
  listen();
  socket_client client(daemon->port(), 4096);
  client.send(post("/generate", generate_stream));
  auto& request = actors.wait_for(0);
  request.sink(started());
  for (int i = 0; i < 20'000 && !request.request.cancel.cancelled(); ++i) {
    if (!request.request.window->full()) request.sink(delta(0, std::string(1000, 'x')));
    std::this_thread::yield();
  }
  eventually([&] { return request.request.cancel.cancelled(); });
}

TEST_F(Server, LimitsHeaderAndBodyAndStillLetsTheAnswerBeRead) {
  settings.server.max_header_bytes = 2048;
  settings.server.max_body_bytes = 4096;
  listen();
  EXPECT_THAT(exchange_of(get("/" + std::string(4000, 'x'))), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(exchange_of("POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: 4097\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("Connection: close")));
  socket_client client(daemon->port());
  client.send("POST /generate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 500; ++i) client.send("1000\r\n" + std::string(4096, 'x') + "\r\n");
  EXPECT_THAT(client.read_to_end(), testing::AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("Connection: close")));
}

TEST_F(Server, ReadsABodyInChunksOfOneByteAndAfterContinue) {
  actors.answer_at_once = true;
  listen();
  socket_client client(daemon->port());
  client.send("POST /generate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char c : std::string_view(generate)) client.send("1;x=y\r\n" + std::string(1, c) + "\r\n");
  client.send("0\r\nTrailer: t\r\n\r\n");
  EXPECT_THAT(client.read_response(), HasSubstr("Hello world"));

  const std::string request = post("/generate", generate, "Expect: 100-continue\r\n");
  const std::size_t body = request.find("\r\n\r\n") + 4;
  client.send(request.substr(0, body));
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(request.substr(body));
  EXPECT_THAT(client.read_response(), HasSubstr("Hello world"));

  // Asked for while an answer is still owed, it comes after that.
  client.send(post("/generate", generate) + request.substr(0, body));
  EXPECT_THAT(client.read_response(), HasSubstr("Hello world"));
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(request.substr(body));
  EXPECT_THAT(client.read_response(), HasSubstr("Hello world"));
}

TEST_F(Server, ClosesAfterFramingThatCanBeReadInTwoWays) {
  listen();
  socket_client client(daemon->port());
  client.send("POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
              get("/health"));
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer,
              testing::AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Connection: close"), Not(HasSubstr("200 OK"))));
}

TEST_F(Server, TimesOutASlowHeaderAndASlowBody) {
  settings.server.header_timeout = settings.server.body_timeout = std::chrono::milliseconds(30);
  listen();
  EXPECT_THAT(exchange_of("GET /health HTTP/1.1\r\nHos"), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(exchange_of("POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"),
              StartsWith("HTTP/1.1 408"));
}

TEST_F(Server, ClosesIdleConnectionsSilently) {
  settings.server.idle_timeout = std::chrono::milliseconds(30);
  listen();
  socket_client client(daemon->port());
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(Server, SendsCommentsIntoASilentStream) {
  settings.server.sse_ping = std::chrono::milliseconds(10);
  listen();
  socket_client client(daemon->port());
  client.send(post("/generate", generate_stream));
  actors.wait_for(0).sink(started());
  EXPECT_THAT(client.read_until(": ping\n\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, RoutesByPathAndMethod) {
  listen();
  EXPECT_THAT(exchange_of(get("/nowhere")),
              testing::AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("\"code\":\"not_found\"")));
  EXPECT_THAT(exchange_of(get("/\xff\xfe")), HasSubstr("nothing at /\uFFFD\uFFFD;"));
  EXPECT_THAT(exchange_of(get("http://a/version")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(exchange_of(get("/generate")),
              testing::AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: POST, OPTIONS")));
  EXPECT_THAT(exchange_of(post("/health", "{}")),
              testing::AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")));
  EXPECT_THAT(exchange_of("OPTIONS /generate HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(exchange_of("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(exchange_of(get("/v1/models")), HasSubstr("\"id\":\"small\""));
  EXPECT_THAT(exchange_of(get("/v1/models/small?x=1")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(exchange_of(get("/v1/models/other%2Fname")), HasSubstr("model_not_found"));
  EXPECT_THAT(exchange_of(get("/v1/stream")), StartsWith("HTTP/1.1 426"));
  EXPECT_THAT(exchange_of(get("/")), HasSubstr("/v1/chat/completions"));
  EXPECT_THAT(exchange_of(get("/version")), HasSubstr("\"version\""));
  EXPECT_THAT(exchange_of(get("/v1/experts")), HasSubstr("\"layers\""));
  EXPECT_THAT(exchange_of(post("/tokenize", R"({"prompt":"abc","return_token_strs":true})")),
              HasSubstr(R"({"count":3,"max_model_len":64,"tokens":[7,7,7],"token_strs":["t","t","t"]})"));
  EXPECT_THAT(exchange_of(post("/detokenize", R"({"tokens":[1,2]})")), HasSubstr(R"({"prompt":"xx"})"));
}

TEST_F(Server, AnswersHeadWithoutABody) {
  listen();
  socket_client client(daemon->port());
  client.send("HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n" + get("/version"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: ")));
  EXPECT_THAT(client.read_response(), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, AcceptsJsonOnly) {
  actors.answer_at_once = true;
  listen();
  const auto with_type = [&](std::string_view type) {
    return exchange_of("POST /generate HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + std::string(type) +
                       "Content-Length: " + std::to_string(std::string_view(generate).size()) + "\r\n\r\n" + generate)
        .substr(0, 12);
  };
  EXPECT_EQ(with_type("Content-Type: application/x-www-form-urlencoded\r\n"), "HTTP/1.1 415");
  EXPECT_EQ(with_type("Content-Type: application/json; charset=latin1\r\n"), "HTTP/1.1 415");
  EXPECT_EQ(with_type("Content-Encoding: gzip\r\n"), "HTTP/1.1 415");
  EXPECT_EQ(with_type("Content-Type: application/json; charset=\"UTF-8\"\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(with_type(""), "HTTP/1.1 200");
}

TEST_F(Server, ReturnsAClientsRequestIdOrMakesOne) {
  listen();
  EXPECT_THAT(exchange_of(get("/health", "X-Request-Id: mine-1\r\n")), HasSubstr("X-Request-Id: mine-1\r\n"));
  EXPECT_THAT(exchange_of(get("/health", "X-Request-Id: has space\r\n")), Not(HasSubstr("has space")));
  EXPECT_THAT(exchange_of(get("/health", "X-Request-Id: " + std::string(200, 'x') + "\r\n")), Not(HasSubstr("xxx")));
}

TEST_F(Server, PassesDeadlinesAndCacheWishes) {
  listen();
  socket_client client(daemon->port());
  const auto before = std::chrono::steady_clock::now();
  client.send(post("/generate", generate, "X-Request-Timeout-Ms: 50\r\nCache-Control: no-cache\r\n"));
  const auto& request = actors.wait_for(0).request;
  EXPECT_GE(request.deadline, before + std::chrono::milliseconds(50));
  EXPECT_LE(request.deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(request.queue_deadline, request.deadline);
  EXPECT_FALSE(request.use_cache);
  EXPECT_TRUE(request.store_in_cache);
  EXPECT_THAT(exchange_of(post("/generate", generate, "X-Request-Timeout-Ms: -1\r\n")), StartsWith("HTTP/1.1 400"));
}

TEST_F(Server, ReadsCacheWishesInAnyCaseAndFromEveryLine) {
  listen();
  std::size_t requests = 0;
  const auto wishes = [&](std::string_view headers) {
    socket_client client(daemon->port());
    client.send(post("/generate", generate, headers));
    const auto& request = actors.wait_for(requests++).request;
    return std::pair(request.use_cache, request.store_in_cache);
  };
  const std::pair as_usual(true, true), computed(false, true), not_kept(false, false);
  EXPECT_EQ(wishes("Cache-Control: max-age=0 , No-Cache\r\n"), computed);
  EXPECT_EQ(wishes("Cache-Control: no-cache\r\ncache-control: ,NO-STORE\r\n"), not_kept);
  EXPECT_EQ(wishes("Cache-Control: x=\"a\\\", no-store\", no-cache=\"y\"\r\n"), computed);
  EXPECT_EQ(wishes("Cache-Control: no-caches, x=\"no-store\", y=no-store\r\n"), as_usual);
}

TEST_F(Server, SaysThatItIsLoadingWhileHealthIsGreen) {
  actors.loaded = false;
  actors.health.state = actors::health_report::state_kind::loading;
  listen();
  EXPECT_THAT(exchange_of(get("/health")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(exchange_of(get("/ready")), testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: ")));
  EXPECT_THAT(exchange_of(post("/generate", generate)),
              testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: ")));
  EXPECT_THAT(exchange_of(get("/v1/models")), StartsWith("HTTP/1.1 503"));
}

TEST_F(Server, CountsRequestsWithABoundedSetOfLabels) {
  listen();
  for (int i = 0; i < 50; ++i) exchange_of(get("/path" + std::to_string(i)));
  exchange_of("BREW /health HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string metrics = exchange_of(get("/metrics"));
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(metrics, HasSubstr(R"(http_requests_total{handler="other",method="GET",status="404"} 50)"));
  EXPECT_THAT(metrics, HasSubstr(R"(http_requests_total{handler="/health",method="other",status="405"} 1)"));
  EXPECT_THAT(metrics, Not(HasSubstr("path1")));
}

TEST_F(Server, TurnsAwayMoreConnectionsThanItMayHave) {
  settings.server.max_connections = 1;
  listen();
  socket_client first(daemon->port());
  first.send(get("/health"));
  first.read_response();
  socket_client second(daemon->port());
  EXPECT_THAT(second.read_to_end(), testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
  first.close();
  eventually([&] {
    socket_client again(daemon->port());
    again.send(get("/health"));
    return again.read_response().starts_with("HTTP/1.1 200");
  });
}

TEST_F(Server, ClosesAConnectionWhoseHandlerThrowsAndServesTheOthers) {
  settings.server.max_connections = 2;
  upstream faulty = actors.calls();
  faulty.health = []() -> actors::health_report { throw std::runtime_error("a fault of the test"); };
  faulty.token_texts = [](const auto&) -> std::vector<std::string> { throw std::runtime_error("another"); };
  listen(faulty);
  socket_client stream(daemon->port());
  stream.send(post("/generate", generate_stream));
  auto& request = actors.wait_for(0);
  request.sink(started());
  const std::string texts = post("/tokenize", R"({"prompt":"abc","return_token_strs":true})");  // From a posted task.
  for (const std::string& fatal : {get("/health"), texts, get("/health"), texts})
    eventually([&] {  // The one before may still have the place.
      socket_client client(daemon->port());
      client.send(fatal);
      return client.closed_by_server();
    });
  request.sink(finished(0));
  request.sink(done(1, 0));
  EXPECT_THAT(stream.read_until("[DONE]"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, EndsBusyConnectionsAfterTheirAnswerWhenItStopsAccepting) {
  listen();
  socket_client busy(daemon->port());
  socket_client idle(daemon->port());
  idle.send(get("/health"));
  idle.read_response();
  busy.send(post("/generate", generate));
  auto& request = actors.wait_for(0);
  daemon->stop_accepting();
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_FALSE(daemon->wait_until_idle(std::chrono::milliseconds(1)));
  request.sink(started());
  request.sink(delta(0, "late"));
  request.sink(finished(0));
  request.sink(done(1, 1));
  EXPECT_THAT(busy.read_to_end(), testing::AllOf(HasSubstr("late"), HasSubstr("Connection: close")));
  busy.close();
  idle.close();
  EXPECT_TRUE(daemon->wait_until_idle(std::chrono::seconds(20)));
  EXPECT_THROW(socket_client{daemon->port()}, std::runtime_error);
}

TEST_F(Server, AnswersOnceOnNewConnectionsWhileItDrains) {
  listen();
  daemon->drain();
  EXPECT_THAT(exchange_of(get("/ready")), testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Connection: close")));
}

TEST_F(Server, CancelsEverythingWhenItStopsAndIgnoresLateEvents) {
  listen();
  socket_client client(daemon->port());
  client.send(post("/generate", generate_stream));
  auto& request = actors.wait_for(0);
  request.sink(started());
  daemon->stop();
  EXPECT_TRUE(request.request.cancel.cancelled());
  request.sink(delta(0, "late"));
  daemon.reset();
  request.sink(delta(0, "later"));
}

TEST_F(Server, ServesManyClientsOnSeveralThreads) {
  settings.server.io_threads = 3;
  actors.answer_at_once = true;
  listen();
  std::vector<std::future<int>> clients;
  for (int c = 0; c < 8; ++c)
    clients.push_back(std::async(std::launch::async, [&] {
      int good = 0;
      socket_client client(daemon->port());
      for (int i = 0; i < 50; ++i) {
        client.send(post("/v1/completions", generate_stream));
        good += client.read_until("\r\n0\r\n\r\n").find("[DONE]") != std::string::npos;
      }
      return good;
    }));
  for (auto& client : clients) EXPECT_EQ(client.get(), 50);
}

}  // namespace
}  // namespace troupe::net
