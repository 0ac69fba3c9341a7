#include "model/tokenizer/parts.hpp"

#include <unordered_set>

namespace troupe::model {
namespace {

/// Decides about special tokens that are sought in normalized text, where positions in the original are lost: the n-th
/// occurrence there is the n-th in the original, and it counts if no user wrote any of it. Where the occurrences do not
/// correspond, none counts.
class normalized_permission {
 public:
  normalized_permission(std::string_view original, std::string_view normalized, const added_tokens::permission& where)
      : original_(original), normalized_(normalized), where_(where) {}

  bool operator()(const added_token& token, const text_range& range) {
    auto [entry, fresh] = known_.try_emplace(token.id);
    auto& k = entry->second;
    if (fresh) {
      const pattern spelling = std::string(normalized_.substr(range.begin, range.end - range.begin));
      std::vector<text_range> before;
      find_all(token.content, original_, before);
      find_all(spelling, normalized_, k.places);
      if (before.size() == k.places.size())
        for (const auto& place : before) k.allowed.push_back(where_(token, place));
      else
        k.allowed.assign(k.places.size(), false);
    }
    const auto place = std::lower_bound(k.places.begin(), k.places.end(), range.begin,
                                        [](const text_range& r, std::size_t begin) { return r.begin < begin; });
    return place != k.places.end() && place->begin == range.begin &&
           k.allowed[static_cast<std::size_t>(place - k.places.begin())];
  }

 private:
  struct occurrences {
    std::vector<text_range> places;
    std::vector<bool> allowed;
  };
  std::string_view original_, normalized_;
  const added_tokens::permission& where_;
  std::unordered_map<token_id, occurrences> known_;
};

}  // namespace

std::optional<token_id> tokenizer::parts::find(std::string_view text) const {
  const auto id = model_tokens.find(text);
  return id ? id : outside_tokens.find(text);
}

std::optional<std::string_view> tokenizer::parts::decoded_text(token_id id, bool skip_special) const {
  if (!has(id) || (skip_special && skipped[static_cast<std::size_t>(id)])) return std::nullopt;
  if (const auto other = spoken.find(id); other != spoken.end()) return other->second;
  return text(id);
}

void tokenizer::parts::finish(std::vector<added_token> tokens, const std::vector<merge_rule>& rules, bpe::options how) {
  special.assign(span(), false);
  skipped.assign(span(), false);
  std::unordered_set<std::string> special_spellings;
  for (const auto& token : tokens) {
    special[static_cast<std::size_t>(token.id)] = token.special;
    if (token.special) special_spellings.insert(token.content);
    if (!token.normalized) continue;
    if (auto spelling = run(normalizers, token.content); spelling != token.content)
      spoken[token.id] = std::move(spelling);
  }
  for (const auto& token : tokens) {
    const auto other = spoken.find(token.id);
    skipped[static_cast<std::size_t>(token.id)] =
        special_spellings.contains(other == spoken.end() ? token.content : other->second);
  }
  added = added_tokens(std::move(tokens), normalizers);
  how.reserved = special;
  model.emplace(model_tokens, rules, std::move(how));
}

std::vector<token_id> tokenizer::parts::encode(std::string_view text, bool parse_special,
                                               const std::vector<text_range>* user) const {
  const added_tokens::permission template_wrote = [user](const added_token&, const text_range& range) {
    const auto first = std::upper_bound(user->begin(), user->end(), range.begin,
                                        [](std::size_t begin, const text_range& u) { return begin < u.end; });
    return first == user->end() || first->begin >= range.end;
  };
  const added_tokens::policy policy{parse_special, user ? &template_wrote : nullptr};

  std::vector<token_id> out;
  for (const auto& match : added.find(text, false, policy)) {
    if (match.id >= 0) {
      out.push_back(match.id);
      continue;
    }
    const auto& range = match.range;
    const auto between = text.substr(range.begin, range.end - range.begin);
    const added_tokens::permission shifted = [&](const added_token& token, const text_range& inside) {
      return template_wrote(token, {range.begin + inside.begin, range.begin + inside.end});
    };
    encode_between(between, range.begin == 0, {parse_special, user ? &shifted : nullptr}, out);
  }
  return out;
}

void tokenizer::parts::encode_between(std::string_view text, bool starts_input, const added_tokens::policy& policy,
                                      std::vector<token_id>& out) const {
  const auto normalized = run(normalizers, std::string(text));
  added_tokens::permission allowed;
  added_tokens::policy here{policy.parse, nullptr};
  if (policy.where && added.any_normalized_special()) {
    allowed = normalized_permission(text, normalized, *policy.where);
    here.where = &allowed;
  }
  for (const auto& match : added.find(normalized, true, here)) {
    if (match.id >= 0) {
      out.push_back(match.id);
      continue;
    }
    cut_text cut{.text = normalized.substr(match.range.begin, match.range.end - match.range.begin),
                 .starts_input = starts_input && match.range.begin == 0};
    run(pre_tokenizers, cut);
    for (const auto& piece : cut.pieces)
      model->encode(std::string_view(cut.text).substr(piece.begin, piece.end - piece.begin), cut.as_bytes, out);
  }
}

}  // namespace troupe::model
