#include "config/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "config/parse_value.hpp"

namespace troupe::config {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string failure_of(std::string_view yaml, const environment& env = {}, const overrides& flags = {}) {
  auto loaded = load_text(yaml, "troupe.yaml", env, flags);
  return loaded ? "no error" : loaded.error().to_string();
}

TEST(Load, GivesTheDefaultsWhenNothingIsSaid) {
  auto loaded = load(std::nullopt, {}, {});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->server.port, 8000);
  EXPECT_EQ(loaded->engine.max_wait, 50ms);
}

TEST(Load, ReadsEveryTypeFromYaml) {
  auto loaded = load_text(R"(
model: {path: /models/a, precision: int8}
server:
  host: "::1"
  port: 0
  max_body_bytes: 8MiB
  idle_timeout: 1.5min
engine:
  preload_experts: off
  max_wait: 0
)",
                          "troupe.yaml", {}, {});
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->model.path, "/models/a");
  EXPECT_EQ(loaded->model.precision, "int8");
  EXPECT_EQ(loaded->server.host, "::1");
  EXPECT_EQ(loaded->server.port, 0);
  EXPECT_EQ(loaded->server.max_body_bytes, 8U << 20);
  EXPECT_EQ(loaded->server.idle_timeout, 90s);
  EXPECT_FALSE(loaded->engine.preload_experts);
  EXPECT_EQ(loaded->engine.max_wait, 0ms);
}

TEST(Load, LetsTheEnvironmentOverrideTheFileAndFlagsOverrideBoth) {
  const std::string yaml = "server: {port: 1, io_threads: 2, max_n: 3}";
  auto loaded = load_text(yaml, "troupe.yaml", {{"TROUPE_SERVER_IO_THREADS", "4"}, {"TROUPE_SERVER_MAX_N", "5"}},
                          {{"server.max_n", "6"}, {"server.max_n", "7"}});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->server.port, 1);
  EXPECT_EQ(loaded->server.io_threads, 4U);
  EXPECT_EQ(loaded->server.max_n, 7U);
}

TEST(Load, NamesFileLineAndKeyOfABadValue) {
  EXPECT_EQ(failure_of("server:\n  host: a\n  port: 70000\n"),
            "troupe.yaml:3 server.port: '70000' is out of range: it must be 0 to 65535");
  EXPECT_THAT(failure_of("server:\n  port: eighty\n"), HasSubstr("troupe.yaml:2 server.port: 'eighty' is not a whole"));
  EXPECT_THAT(failure_of("server:\n  port: -1\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(failure_of("server:\n  port: 1.5\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(failure_of("server: {port: 99999999999999999999999}"), HasSubstr("too large"));
  EXPECT_THAT(failure_of("engine:\n  max_wait: 50\n"), HasSubstr("such as 50ms"));
  EXPECT_THAT(failure_of("model:\n  precision: int9\n"), HasSubstr("did you mean 'int"));
}

TEST(Load, RefusesUnknownKeysAndSuggestsTheNearest) {
  EXPECT_EQ(failure_of("server:\n  prot: 1\n"),
            "troupe.yaml:2 server.prot: there is no such option; did you mean 'port'?");
  EXPECT_EQ(failure_of("\nserv:\n  port: 1\n"), "troupe.yaml:2 serv: there is no such section; did you mean 'server'?");
  EXPECT_THAT(failure_of("completely_else: 1"), AllOf(HasSubstr("known are"), HasSubstr("server"), HasSubstr("log")));
}

TEST(Load, RefusesWhatIsNoConfiguration) {
  EXPECT_THAT(failure_of("server: {port: 1, port: 2}"), HasSubstr("appears twice"));
  EXPECT_THAT(failure_of("- 1\n- 2\n"), HasSubstr("expected sections"));
  EXPECT_THAT(failure_of("server: 5\n"), HasSubstr("expected the options"));
  EXPECT_THAT(failure_of("server:\n  port: [1]\n"), HasSubstr("expected one value"));
  EXPECT_THAT(failure_of("server:\n  port:\n"), HasSubstr("no value"));
  EXPECT_THAT(failure_of("server: {port: 1\n"), HasSubstr("troupe.yaml:"));
  EXPECT_THAT(failure_of("a: 1\n---\nb: 2\n"), HasSubstr("more than one document"));
  EXPECT_THAT(failure_of("[a]: 1\n"), HasSubstr("plain word"));
  EXPECT_THAT(failure_of(std::string(5000, '[')), HasSubstr("troupe.yaml"));
  EXPECT_THAT(failure_of("server: *nowhere"), HasSubstr("troupe.yaml:1"));
}

TEST(Load, AcceptsAnEmptyFileAndEmptySections) {
  EXPECT_EQ(failure_of(""), "no error");
  EXPECT_EQ(failure_of("# only a comment\n"), "no error");
  EXPECT_EQ(failure_of("server:\nmodel:\n"), "no error");
}

TEST(Load, SaysThatAFileIsMissing) {
  auto loaded = load("/nonexistent/troupe.yaml", {}, {});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, error_kind::io);
  EXPECT_THAT(loaded.error().to_string(), HasSubstr("/nonexistent/troupe.yaml"));
}

TEST(Load, NamesTheVariableOrFlagOfABadValue) {
  EXPECT_THAT(failure_of("", {{"TROUPE_SERVER_PORT", "x"}}), HasSubstr("environment variable TROUPE_SERVER_PORT"));
  EXPECT_THAT(failure_of("", {{"TROUPE_SERVER_PORT", "tcp://10.0.0.1:8000"}}), HasSubstr("enableServiceLinks"));
  EXPECT_THAT(failure_of("", {}, {{"engine.max_batch_size", "0"}}), HasSubstr("--max-num-seqs: '0' is out of range"));
}

TEST(Load, ChecksRulesBetweenOptions) {
  EXPECT_THAT(failure_of("engine: {step_tokens: 8, max_batch_size: 9}"), HasSubstr("engine.step_tokens"));
  EXPECT_THAT(failure_of("server: {host: ''}"), HasSubstr("server.host"));
}

TEST(Load, WarnsOfVariablesThatNoOptionHas) {
  const auto warnings = unknown_variables({{"TROUPE_SERVER_PROT", "1"}, {"TROUPE_SERVER_PORT", "1"}, {"HOME", "/"}});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("did you mean TROUPE_SERVER_PORT"));
}

TEST(Options, HaveUniqueNamesAndDefaultsThatTheyAcceptThemselves) {
  std::set<std::string> names;
  for (const option& o : options()) {
    EXPECT_TRUE(names.insert(o.path).second) << o.path;
    EXPECT_TRUE(names.insert(o.environment).second) << o.path;
    std::istringstream flags(o.flags);
    for (std::string flag; std::getline(flags, flag, ',');) EXPECT_TRUE(names.insert(flag).second) << flag;
    settings out;
    EXPECT_TRUE(o.set(out, o.default_text)) << o.path;
    EXPECT_EQ(o.show(out), o.default_text) << o.path;
    EXPECT_THAT(o.help, testing::EndsWith("."));
  }
}

TEST(Options, AreAllDocumented) {
  const auto docs = std::filesystem::path(TROUPE_TEST_DATA).parent_path().parent_path() / "docs";
  std::ifstream file(docs / "configuration.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const option& o : options()) {
    std::string flags = o.flags;
    for (std::size_t comma = 0; (comma = flags.find(',', comma)) != std::string::npos; comma += 4)
      flags.replace(comma, 1, "`, `");
    const std::string row = "| `" + o.path + "` | `" + flags + "` | `" + o.environment + "` | " + o.type + " | " +
                            o.range + " | " + (o.default_text.empty() ? "" : "`" + o.default_text + "`") + " | " +
                            o.help + " |\n";
    EXPECT_THAT(page.str(), HasSubstr(row)) << "docs/configuration.md needs this row:\n" << row;
  }
}

TEST(Values, AreReadAndShownInThePeoplesUnits) {
  EXPECT_EQ(*parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(show_duration(5min), "5min");
  EXPECT_EQ(show_duration(1501ms), "1501ms");
  EXPECT_EQ(*parse_size("1KB"), 1000U);
  EXPECT_EQ(*parse_size("1.5KiB"), 1536U);
  EXPECT_EQ(*parse_size("12"), 12U);
  EXPECT_EQ(show_size(4 << 20), "4MiB");
  EXPECT_EQ(show_size(1025), "1025");
  EXPECT_TRUE(*parse_boolean("ENABLED"));
  for (const auto* bad : {"", "ms", "1.2.3s", "-1s", "1 week", "1e3s", "999999999999999999999h"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
  for (const auto* bad : {"", "MiB", "-1", "1XiB", "99999999999999999999"}) EXPECT_FALSE(parse_size(bad)) << bad;
  EXPECT_FALSE(parse_boolean("maybe"));
}

}  // namespace
}  // namespace troupe::config
