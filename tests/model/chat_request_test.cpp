// What a request can and cannot do to a rendering: spell a special token, be long, come in parts.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "model/chat/chat_template.hpp"

namespace troupe::model {
namespace {

namespace json = boost::json;

std::unique_ptr<const chat_template> parsed(std::string_view source) {
  auto made = chat_template::parse(source, "test");
  EXPECT_TRUE(made) << source;
  return made ? *std::move(made) : nullptr;
}

/// The bytes that no client wrote.
std::string own_part(const rendered_prompt& prompt) {
  std::string out;
  std::size_t at = 0;
  for (const auto& span : prompt.from_user) {
    out += prompt.text.substr(at, span.begin - at);
    at = span.end;
  }
  return out + prompt.text.substr(at);
}

TEST(ChatProvenance, TextOfAClientStaysItsOwnWhateverATemplateDoesToIt) {
  // <|E|> is what a client smuggles; the template itself writes only what `own` says.
  const json::object variables = {
      {"c", " <|E|> "}, {"m", {{{"content", "<|E|>"}, {"<|E|>", 1}}}}, {"l", {"<|E|>", "<|e|>"}}};
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[{{ c }}]", "[]"},
      {"[{{ c | trim }}]", "[]"},
      {"[{{ c | upper }}{{ c.lower() }}{{ c | title }}{{ c.swapcase() }}{{ c | capitalize }}]", "[]"},
      {"{{ m[0].content | tojson }}", "\"\""},
      {"{{ m | tojson }}", R"([{"": "", "": 1}])"},
      {"{{ l | join('-') }}", "-"},
      {"{{ 'a'.join(l) }}", "a"},
      {"{{ 'x%sy' | format(c) }}", "xy"},
      {"{{ 'x%sy' % c }}{{ '%9s' % l[0] }}", "xy    "},
      {"{{ 'x{}y{0}'.format(c) }}", ""},
      {"{{ 'x{}y{:>8}'.format(c, l[0]) }}", "xy   "},
      {"{{ 'a-b' | replace('-', c) }}{{ 'a-b'.replace('-', c) }}", "abab"},
      {"{{ 'ab'.replace('', l[0]) }}", "ab"},
      {"[{{ c[1:6] }}{{ c[::-1] }}{{ c[2] }}{{ c | reverse }}]", "[]"},
      {"{{ 'a' + c + 'b' }}{{ 1 ~ c ~ 2 }}{{ c * 2 }}", "ab12"},
      {"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(c) }}{{ f(x=c) }}", "<><>"},
      {"{% set ns = namespace(t='') %}{% for x in l %}{% set ns.t = ns.t ~ '|' ~ x %}{% endfor %}{{ ns.t }}", "||"},
      {"{% set t %}a{{ c }}b{% endset %}{{ t }}", "ab"},
      {"{% filter upper %}a{{ c }}{% endfilter %}", "A"},
      {"{% for k, v in m[0].items() %}{{ k }}={{ v }},{% endfor %}", "content=,=1,"},
      {"{% for x in c %}{{ x }}{% endfor %}", ""},
      {"{{ c.split('|')[1] }}{{ c.partition('E')[2] }}{{ c.splitlines()[0] }}", ""},
      {"{{ c.strip(' <') }}{{ c.center(9) }}{{ l[0].zfill(7) }}", "  00"},
      {"{{ c | indent(2, true) }}{{ c | truncate(5, true, '..', 0) }}{{ c | list | join }}", "  .."},
      {"{{ l | first }}{{ l | map('upper') | join }}{{ l | sort | last }}", ""},
      {"{{ c | e }}{{ c | urlencode }}{{ c | string }}", ""},
  };
  for (const auto& [source, own] : cases) {
    const auto made = parsed(source);
    ASSERT_TRUE(made);
    const auto got = made->render(variables, {});
    if (source.find("{0}") != std::string_view::npos) {
      EXPECT_FALSE(got) << source;  // Python does not mix {} and {0} either
      continue;
    }
    ASSERT_TRUE(got) << source << ": " << got.error().to_string();
    EXPECT_EQ(own_part(*got).find('E'), std::string::npos) << source;
    if (source.find("items()") == std::string_view::npos && source.find("m | tojson") == std::string_view::npos) {
      EXPECT_EQ(own_part(*got), own) << source;
    }
  }
}

TEST(ChatProvenance, ReprMarksAllOfATextThatAClientWrote) {
  const auto got = parsed("{{ l }}")->render({{"l", {"<|E|>"}}}, {});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->text, "['<|E|>']");
  EXPECT_EQ(own_part(*got), "[]");
}

json::object conversation(std::size_t messages, std::size_t bytes) {
  json::array all;
  for (std::size_t i = 0; i < messages; ++i)
    all.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(bytes, 'x')}});
  return {{"messages", std::move(all)}, {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_generation_prompt", true}};
}

std::string file(const std::string& name) {
  std::ifstream from(TROUPE_TEST_DATA "/chat/templates/" + name, std::ios::binary);
  EXPECT_TRUE(from) << name;
  return {std::istreambuf_iterator<char>(from), {}};
}

TEST(ChatLimits, LetALongConversationPass) {
  for (const char* name : {"qwen3.jinja", "llama31.jinja", "gemma.jinja", "smollm2.jinja", "harmony.jinja"}) {
    for (const auto& [messages, bytes] : {std::pair<std::size_t, std::size_t>{2000, 1000}, {20, 100'000}}) {
      const auto got = parsed(file(name))->render(conversation(messages, bytes), {});
      ASSERT_TRUE(got) << name << ": " << got.error().to_string();
      EXPECT_GE(got->text.size(), 2'000'000U) << name;
    }
  }
}

TEST(ChatLimits, RefuseWhatATemplateMakesOfItBeyondThem) {
  const auto growing = parsed(
      "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t + m.content %}{% endfor %}{{ ns.t }}");
  EXPECT_TRUE(growing->render(conversation(500, 1000), {}));
  const auto got = growing->render(conversation(20'000, 1000), {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, error_kind::invalid);
  for (const std::string_view hungry :
       {"{% set a = 'a' * 1000000 %}{{ a | replace('a', a) }}", "{{ 'a'.center(1000000000000) }}",
        "{{ '%999999999d' % 1 }}", "{{ '{:>999999999}'.format(1) }}", "{{ '\t'.expandtabs(99999999999) }}",
        "{% set a = 'a' * 1000000 %}{{ range(9999) | join(a) }}", "{{ '%.999999f' % 1.5 }}",
        "{% set n = namespace(x=['a']) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=['a' * 1000000]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{{ 'a'.zfill(9999999999) }}", "{{ [1] | slice(999999999) | list }}"})
    EXPECT_FALSE(parsed(hungry)->render({}, {})) << hungry;
}

TEST(ChatContent, IsAskedForInPartsOnlyByATemplateThatTakesNothingElse) {
  const auto wants = [](std::string_view source) { return parsed(source)->wants_content_parts(); };
  EXPECT_TRUE(wants("{% for m in messages %}{% for p in m['content'] %}{{ p.text }}{% endfor %}{% endfor %}"));
  EXPECT_TRUE(
      wants("{% for m in messages %}{% for p in m.content | selectattr('type', 'eq', 'text') %}{{ p.text }}"
            "{% endfor %}{% endfor %}"));
  EXPECT_TRUE(wants("{% macro f(content) %}{% for p in content %}{{ p.text }}{% endfor %}{% endmacro %}"));
  EXPECT_FALSE(wants("{% for m in messages %}{{ m.content }}{% endfor %}"));
  EXPECT_FALSE(
      wants("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}"));
  EXPECT_FALSE(wants("{% for document in documents %}{% for p in document.content %}{{ p }}{% endfor %}{% endfor %}"));
}

}  // namespace
}  // namespace troupe::model
