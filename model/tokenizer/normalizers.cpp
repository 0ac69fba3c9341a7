#include "model/tokenizer/normalizers.hpp"

#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/overloaded.hpp"

namespace troupe::model {
namespace {

std::string strip(std::string text, const strip_step& ends) {
  std::size_t begin = 0, end = text.size();
  while (ends.left && begin < end) {
    const auto c = unicode::at(text, begin);
    if (!unicode::is_whitespace(c.value)) break;
    begin += c.length;
  }
  while (ends.right && end > begin) {
    const auto last = unicode::before(text, end);
    if (!unicode::is_whitespace(unicode::at(text, last).value)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

void find_all(const pattern& wanted, std::string_view text, std::vector<text_range>& out) {
  if (const auto* expression = std::get_if<regex>(&wanted)) return expression->find_all(text, out);
  out.clear();
  const auto& word = std::get<std::string>(wanted);
  if (word.empty()) return;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size()))
    out.push_back({at, at + word.size()});
}

std::string replace_all(const pattern& wanted, std::string_view content, std::string_view text) {
  std::vector<text_range> matches;
  find_all(wanted, text, matches);
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (const auto& match : matches) {
    out += text.substr(done, match.begin - done);
    out += content;
    done = match.end;
  }
  return out += text.substr(done);
}

std::string run(const normalizer& step, std::string text) {
  return std::visit(
      overloaded{[&](const unicode_form& form) { return unicode::normalize(text, form.to); },
                 [&](const lowercase_step&) { return unicode::lowercase(text); },
                 [&](const replace_step& replace) { return replace_all(replace.wanted, replace.content, text); },
                 [&](const prepend_step& prepend) { return text.empty() ? text : prepend.prefix + text; },
                 [&](const strip_step& ends) { return strip(std::move(text), ends); },
                 [&](const byte_level_step&) { return to_byte_alphabet(text); }},
      step);
}

std::string run(const std::vector<normalizer>& chain, std::string text) {
  for (const auto& step : chain) text = run(step, std::move(text));
  return text;
}

}  // namespace troupe::model
