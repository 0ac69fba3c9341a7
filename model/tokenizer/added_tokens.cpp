#include "model/tokenizer/added_tokens.hpp"

#include <algorithm>

#include "model/tokenizer/unicode.hpp"

namespace troupe::model {
namespace {

bool word_before(std::string_view text, std::size_t at) {
  return at > 0 && unicode::is_word(unicode::at(text, unicode::before(text, at)).value);
}
bool word_after(std::string_view text, std::size_t at) {
  return at < text.size() && unicode::is_word(unicode::at(text, at).value);
}

std::size_t spaces_begin(std::string_view text, std::size_t end, std::size_t limit) {
  while (end > limit) {
    const auto last = unicode::before(text, end);
    if (!unicode::is_whitespace(unicode::at(text, last).value)) break;
    end = last;
  }
  return end;
}
std::size_t spaces_end(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const auto c = unicode::at(text, at);
    if (!unicode::is_whitespace(c.value)) break;
    at += c.length;
  }
  return at;
}

}  // namespace

void spelling_finder::add(std::string_view spelling, std::size_t token) {
  if (spelling.empty()) return;
  first_[static_cast<unsigned char>(spelling.front())] = true;
  std::uint32_t node = 0;
  for (const char c : spelling) {
    const auto [edge, fresh] = edges_.try_emplace(std::uint64_t{node} << 8 | static_cast<unsigned char>(c), nodes_);
    if (fresh) ++nodes_;
    node = edge->second;
  }
  ends_[node] = token;
}

template <class Judge>
void spelling_finder::search(std::string_view text, Judge&& judge) const {
  struct found {
    std::size_t end, token;
  };
  std::vector<found> here;  // shortest first
  for (std::size_t at = 0; at < text.size();) {
    if (!first_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    here.clear();
    std::uint32_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      const auto edge = edges_.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(text[i]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (const auto end = ends_.find(node); end != ends_.end()) here.push_back({i + 1, end->second});
    }
    auto next = at + 1;
    for (; !here.empty(); here.pop_back())
      if (judge(here.back().token, text_range{at, here.back().end}) != verdict::look_further) {
        next = here.back().end;
        break;
      }
    at = next;
  }
}

added_tokens::added_tokens(std::vector<added_token> tokens, const std::vector<normalizer>& chain)
    : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto& token = tokens_[i];
    if (token.normalized)
      normalized_.add(run(chain, token.content), i);
    else
      raw_.add(token.content, i);
    any_normalized_special_ = any_normalized_special_ || (token.normalized && token.special);
  }
}

std::vector<token_match> added_tokens::find(std::string_view text, bool normalized, const policy& special) const {
  const auto& finder = normalized ? normalized_ : raw_;
  std::vector<token_match> out;
  std::size_t done = 0;
  if (!finder.empty())
    finder.search(text, [&](std::size_t index, text_range range) {
      using enum spelling_finder::verdict;
      const auto& token = tokens_[index];
      if (token.special && !special.parse) return skip;
      if (token.special && special.where && !(*special.where)(token, range)) return look_further;
      if (token.single_word && (word_before(text, range.begin) || word_after(text, range.end))) return skip;
      if (token.strip_left) range.begin = spaces_begin(text, range.begin, done);
      if (token.strip_right) range.end = spaces_end(text, range.end);
      if (done < range.begin) out.push_back({{done, range.begin}, -1});
      out.push_back({range, token.id});
      done = range.end;
      return take;
    });
  if (done < text.size()) out.push_back({{done, text.size()}, -1});
  return out;
}

}  // namespace troupe::model
