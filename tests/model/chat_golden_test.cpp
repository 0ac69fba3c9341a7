// Every template and snippet of tests/data/chat against what jinja2 made of it (tools/make_golden_templates.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "model/chat/chat_template.hpp"

namespace troupe::model {
namespace {

namespace json = boost::json;

std::string read(const std::string& name) {
  std::ifstream file(std::string(TROUPE_TEST_DATA "/chat/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

result<rendered_prompt> render(std::string_view source, const json::object& variables, std::int64_t now = 0,
                               const template_limits& limits = {}) {
  auto made = chat_template::parse(source, "test");
  if (!made) return made.error();
  return (*made)->render(variables, std::chrono::system_clock::time_point(std::chrono::seconds(now)), limits);
}

std::string_view view(const json::value& v) { return {v.as_string().data(), v.as_string().size()}; }

/// Empty when the outcome is the reference's, else what is wrong.
std::string difference(const result<rendered_prompt>& got, const json::object& expected) {
  if (const auto* output = expected.if_contains("output")) {
    if (!got) return "fails: " + got.error().to_string();
    return got->text == view(*output) ? "" : "renders\n" + got->text + "\nnot\n" + std::string(view(*output));
  }
  if (got) return "renders '" + got->text + "' where the reference fails";
  const std::string_view message = view(expected.at("error"));
  return message.empty() || got.error().message == message ? "" : "says '" + got.error().message + "'";
}

class ChatTemplate : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(ChatTemplate, RendersConversationsAsTheReferenceDoes) {
  const auto golden = json::parse(read("templates.json")).as_object();
  std::size_t seen = 0;
  for (const auto& one : golden.at("cases").as_array()) {
    const auto& expected = one.as_object();
    const std::string file(view(expected.at("template")));
    const auto& variables = golden.at("conversations").at(view(expected.at("conversation"))).as_object();
    const auto got = render(read("templates/" + file), variables, golden.at("now").as_int64());
    EXPECT_EQ(difference(got, expected), "") << file << " with " << view(expected.at("conversation"));
    ++seen;
  }
  EXPECT_GE(seen, 150U);
}

TEST_F(ChatTemplate, RendersSnippetsAsTheReferenceDoes) {
  const auto golden = json::parse(read("snippets.json")).as_object();
  // Where the interpreter is known to fall short: the list may only shrink.
  const auto differing = json::parse(read("known_differences.json")).as_array();
  std::size_t seen = 0;
  for (const auto& one : golden.at("cases").as_array()) {
    const auto& expected = one.as_object();
    const auto got = render(view(expected.at("source")), golden.at("variables").as_object());
    const bool known = std::find(differing.begin(), differing.end(), expected.at("source")) != differing.end();
    EXPECT_EQ(difference(got, expected).empty(), !known)
        << view(expected.at("source")) << "\n"
        << (known ? "now agrees: take it off known_differences.json" : difference(got, expected));
    ++seen;
  }
  EXPECT_GE(seen, 300U);
}

TEST_F(ChatTemplate, MarksWhatTheRequestWrote) {
  const json::object variables = {{"bos_token", "<s>"}, {"messages", {{{"role", "user"}, {"content", " <s>hi "}}}}};
  const auto got = render("{{ bos_token }}[{{ messages[0].content | trim | replace('h', '<s>') }}]", variables);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->text, "<s>[<s><s>i]");
  ASSERT_EQ(got->from_user.size(), 2U);
  EXPECT_EQ(got->from_user[0].begin, 4U);
  EXPECT_EQ(got->from_user[0].end, 7U);
  EXPECT_EQ(got->from_user[1].begin, 10U);
  EXPECT_EQ(got->from_user[1].end, 11U);
}

TEST_F(ChatTemplate, SaysTheLineOfAnErrorAndTheTemplatesOwnMessage) {
  const auto got = render("a\n{% if true %}\n{{ raise_exception('Only users.') }}{% endif %}", {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, error_kind::invalid);
  EXPECT_EQ(got.error().message, "Only users.");
  EXPECT_EQ(got.error().place, "test: line 3");
}

TEST_F(ChatTemplate, StopsAtItsLimits) {
  const template_limits small{.steps = 20'000, .output_bytes = 1 << 16, .memory_bytes = 1 << 20, .depth = 64};
  for (const std::string_view hungry :
       {"{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 'a' * 1000000000 }}", "{{ [1] * 1000000000 }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for i in range(9999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}"})
    EXPECT_FALSE(render(hungry, {}, 0, small)) << hungry;
  for (const std::string_view twisted :
       {"{{ [1]|batch(10**12, 0) }}", "{{ [1]|slice(10**12, 0) }}",
        "{% set ns = namespace(x=1) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(5000) %}{% set ns.x = {'a': ns.x} %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(5000) %}{% set ns.x = cycler(ns.x) %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(5000) %}{% for j in [ns.x, 1] %}{% set ns.x = loop %}"
        "{% endfor %}{% endfor %}",
        "{% set a = namespace(x=1) %}{% for i in range(60) %}{% set a.x = [a.x, a.x] %}{% endfor %}{{ a.x == [a.x] }}",
        "{% set ns = namespace() %}{% for j in [1] %}{% for i in [1] recursive %}{% set ns.x = loop %}{% endfor %}"
        "{% endfor %}{{ ns.x([1]) }}",
        "{% set ns = namespace() %}{% for i in [1] %}{% set ns.x = loop.changed %}{% endfor %}{{ ns.x(1) }}"})
    EXPECT_FALSE(render(twisted, {})) << twisted;
  for (const std::string_view opener : {"(", "[", "not ", "-", "{1:", "a[", "f("})
    for (const std::size_t count : {1000U, 100'000U}) {
      std::string deep = "{{ ";
      for (std::size_t i = 0; i < count; ++i) deep += opener;
      EXPECT_FALSE(render(deep + "1", {}));
    }
}

/// A leak shows under the address sanitizer, a deep chain as an exhausted stack.
TEST_F(ChatTemplate, FreesRingsAndLongChains) {
  const auto text_of = [](std::string_view source, const json::object& variables = {}) {
    const auto made = render(source, variables);
    return made ? made->text : made.error().message;
  };
  EXPECT_EQ(text_of("{% set a = namespace() %}{% set a.x = a %}{{ a == a }}{{ a == namespace() }}"), "TrueFalse");
  EXPECT_EQ(text_of("{% set a = namespace(x=0) %}{% for i in range(90000) %}{% set a.x = namespace(x=a.x) %}"
                    "{% endfor %}{% set a.x = 0 %}done"),
            "done");
  EXPECT_EQ(text_of("{% set ns = namespace(x=0) %}{% for i in [1, 2] %}"
                    "{% set _ = loop.changed(ns.x) %}{% set ns.x = loop.changed %}{% endfor %}done"),
            "done");
  EXPECT_EQ(
      text_of("{% set ns = namespace(x=0) %}{% macro m() %}{{ caller() }}{% endmacro %}{% for i in range(20000) %}"
              "{% set c = ns.x %}{% call m() %}{% set ns.x = caller %}{% endcall %}{% endfor %}done"),
      "done");
}

/// What a client may set takes the place of functions, as with jinja2.
TEST_F(ChatTemplate, SurvivesVariablesNamedAsFunctions) {
  const json::object twisted{{"namespace", {{"\x01recurse", 1}}}, {"range", 7}, {"raise_exception", nullptr}};
  for (const std::string_view source : {"{{ namespace() }}", "{{ range(3) }}", "{{ raise_exception('x') }}"})
    EXPECT_FALSE(render(source, twisted)) << source;
}

TEST_F(ChatTemplate, SurvivesMutatedTemplatesAndTokenSoup) {
  const template_limits small{.steps = 5000, .output_bytes = 1 << 16, .memory_bytes = 1 << 20, .depth = 64};
  const auto golden = json::parse(read("templates.json")).as_object();
  const auto& variables = golden.at("conversations").at("tools_calls").as_object();
  constexpr const char* words[] = {"{{",
                                   "}}",
                                   "{%",
                                   "%}",
                                   "{#",
                                   "#}",
                                   "-%}",
                                   "if ",
                                   "else",
                                   "endif ",
                                   "for ",
                                   "in ",
                                   "endfor",
                                   "set ",
                                   "a",
                                   "messages",
                                   "(",
                                   ")",
                                   "[",
                                   "]",
                                   ":",
                                   "|",
                                   "tojson",
                                   "is ",
                                   "not ",
                                   "1",
                                   "-1",
                                   "0",
                                   "'x'",
                                   ".",
                                   "=",
                                   "~",
                                   "%",
                                   "**",
                                   "//",
                                   "macro ",
                                   "f()",
                                   "endmacro",
                                   "loop",
                                   "slice",
                                   "9223372036854775807",
                                   "{",
                                   "}",
                                   "\n"};
  std::mt19937 random(7);  // NOLINT: the same soup every time
  const std::string base = read("templates/qwen3.jinja") + read("templates/harmony.jinja");
  for (int round = 0; round < 1500; ++round) {
    std::string source;
    if (round % 2 == 0) {
      source = base.substr(random() % base.size(), 600);
      for (int i = 0; i < 3; ++i) source.insert(random() % (source.size() + 1), words[random() % std::size(words)]);
    } else {
      for (int i = 0; i < 20; ++i) source += words[random() % std::size(words)];
      if (round % 4 == 1) source = "{{ " + source + " }}";
    }
    const auto got = render(source, variables, 0, small);
    if (got) {
      EXPECT_LE(got->text.size(), small.output_bytes);
    } else {
      EXPECT_FALSE(got.error().to_string().empty());
    }
  }
}

}  // namespace
}  // namespace troupe::model
