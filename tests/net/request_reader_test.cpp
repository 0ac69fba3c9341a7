#include "net/http/request_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::net {
namespace {

using testing::HasSubstr;

constexpr auto get = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post(std::string_view headers, std::string_view body) {
  return "POST /generate HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

/// The status of the refusal, 200 for a request and 0 when more is needed.
unsigned status_of(std::string_view bytes, request_limits limits = {}) {
  request_reader reader(limits);
  reader.add(bytes);
  const auto step = reader.next();
  if (const auto* failure = std::get_if<wire_error>(&step)) return failure->status;
  return std::holds_alternative<http_request>(step) ? 200 : 0;
}

TEST(RequestReader, ReadsARequestAlsoByteByByte) {
  const std::string bytes = post("Content-Length: 5\r\nX-Request-Id: r1\r\n", "hello");
  request_reader reader({});
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    reader.add(bytes.substr(i, 1));
    ASSERT_TRUE(std::holds_alternative<request_reader::need_more>(reader.next())) << i;
  }
  reader.add(bytes.substr(bytes.size() - 1));
  const auto step = reader.next();
  const auto& request = std::get<http_request>(step);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path(), "/generate");
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(request.header("x-request-ID"), "r1");
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestReader, CutsPipelinedRequestsApart) {
  request_reader reader({});
  reader.add(post("Content-Length: 2\r\n", "ab").insert(0, get).insert(0, "\r\n").append(get));
  EXPECT_EQ(std::get<http_request>(reader.next()).method, "GET");
  EXPECT_EQ(std::get<http_request>(reader.next()).body, "ab");
  EXPECT_EQ(std::get<http_request>(reader.next()).method, "GET");
  EXPECT_TRUE(std::holds_alternative<request_reader::need_more>(reader.next()));
  EXPECT_EQ(reader.where(), request_reader::phase::idle);
}

TEST(RequestReader, ReadsChunksOfAnySizeWithExtensionsAndTrailers) {
  request_reader reader({});
  std::string bytes = post("Transfer-Encoding: chunked\r\n", "");
  for (const char c : std::string("hello")) bytes += "1;name=value\r\n" + std::string(1, c) + "\r\n";
  reader.add(bytes + "0\r\nX-Trailer: t\r\n\r\n" + get);
  EXPECT_EQ(std::get<http_request>(reader.next()).body, "hello");
  EXPECT_EQ(std::get<http_request>(reader.next()).path(), "/health");
}

TEST(RequestReader, AsksForTheBodyOnlyWhenTheClientWaitsForThat) {
  request_reader reader({});
  reader.add(post("Content-Length: 2\r\nExpect: 100-continue\r\n", ""));
  EXPECT_TRUE(std::holds_alternative<request_reader::expects_continue>(reader.next()));
  EXPECT_EQ(reader.where(), request_reader::phase::body);
  reader.add("ab");
  EXPECT_EQ(std::get<http_request>(reader.next()).body, "ab");
  reader.add(post("Content-Length: 2\r\nExpect: 100-continue\r\n", "cd"));
  EXPECT_EQ(std::get<http_request>(reader.next()).body, "cd");
}

TEST(RequestReader, RefusesFramingThatCanBeReadInTwoWays) {
  EXPECT_EQ(status_of(post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")), 400U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n")), 400U);
  EXPECT_EQ(status_of(post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")), 400U);
  EXPECT_EQ(status_of(post("Content-Length: -1\r\n", "")), 400U);
  EXPECT_EQ(status_of(post("Content-Length: 99999999999999999999\r\n", "")), 400U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")), 501U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: gzip\r\n", "")), 501U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked, gzip\r\n", "")), 501U);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\n", "zz\r\n")), 400U);
}

TEST(RequestReader, RefusesWhatIsNoHttp) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400U);  // No Host.
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505U);
  EXPECT_EQ(status_of("\x16\x03\x01\x02\x01 garbage\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n"), 417U);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200U);
}

TEST(RequestReader, LimitsHeaderAndBodyInEveryFraming) {
  const request_limits limits{.header_bytes = 1000, .body_bytes = 10};
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2000, 'x'), limits), 431U);
  EXPECT_EQ(status_of("GET /" + std::string(2000, 'x'), limits), 431U);
  EXPECT_EQ(status_of(post("Content-Length: 11\r\n", ""), limits), 413U);  // Before the body is there.
  EXPECT_EQ(status_of(post("Content-Length: 10\r\n", "0123456789"), limits), 200U);
  EXPECT_EQ(status_of(post("Content-Length: 11\r\nExpect: 100-continue\r\n", ""), limits), 413U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\n", "6\r\nabcdef\r\n6\r\nabcdef\r\n"), limits), 413U);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\n", "FFFFFFFFFFFFFFF\r\n"), limits), 413U);
}

/// The refusal of an endless request that begins with `start` and goes on with `piece`; bounds what is sent.
unsigned status_of_endless(std::string_view start, std::string_view piece, request_limits limits) {
  request_reader reader(limits);
  reader.add(start);
  for (std::size_t sent = 0; sent < 100 * limits.header_bytes; sent += piece.size()) {
    const auto step = reader.next();
    if (const auto* failure = std::get_if<wire_error>(&step)) return failure->status;
    reader.add(piece);
  }
  return 0;
}

TEST(RequestReader, LimitsWhatFramesAChunkedBody) {
  const request_limits limits{.header_bytes = 1000, .body_bytes = 1000};
  const std::string chunked = post("Transfer-Encoding: chunked\r\n", "");
  const std::string letters(100, 'a');
  EXPECT_EQ(status_of_endless(chunked + "5;name=", letters, limits), 431U);
  EXPECT_EQ(status_of_endless(chunked + "5;name=\"", letters, limits), 431U);
  EXPECT_EQ(status_of_endless(chunked, std::string(100, '0'), limits), 431U);
  EXPECT_EQ(status_of_endless(chunked + "0\r\nX: ", letters, limits), 431U);
  EXPECT_EQ(status_of_endless(chunked + "0\r\n", "X: y\r\n", limits), 431U);
  EXPECT_EQ(status_of_endless(chunked, "1;name=" + letters + "\r\nx\r\n", limits), 431U);
  std::string trailers;
  for (int i = 0; i < 1000; ++i) trailers += "X: y\r\n";
  EXPECT_EQ(status_of(chunked + "0\r\n" + trailers + "\r\n", limits), 431U);
}

TEST(RequestReader, ReadsNothingIntoTheHeaderFromTrailers) {
  request_reader reader({});
  reader.add(post("Transfer-Encoding: chunked\r\nCache-Control: no-store\r\n",
                  "2\r\nab\r\n0\r\nX-Request-Id: late\r\nConnection: close\r\nCache-Control: public\r\n\r\n"));
  const auto step = reader.next();
  const auto& request = std::get<http_request>(step);
  EXPECT_EQ(request.body, "ab");
  EXPECT_EQ(request.header("x-request-id"), "");
  EXPECT_EQ(request.header("cache-control"), "no-store");
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestReader, TakesThePathOfATargetThatIsAWholeUrl) {
  const auto target_of = [](const std::string& target) {
    request_reader reader({});
    reader.add("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return std::get<http_request>(reader.next()).target;
  };
  EXPECT_EQ(target_of("http://a:80/health?x=1"), "/health?x=1");
  EXPECT_EQ(target_of("HTTPS://a/"), "/");
  EXPECT_EQ(target_of("http://a"), "/");
  EXPECT_EQ(target_of("http://a?x=1"), "/?x=1");
  EXPECT_EQ(target_of("/http://a/b"), "/http://a/b");
  EXPECT_EQ(target_of("*"), "*");
}

}  // namespace
}  // namespace troupe::net
