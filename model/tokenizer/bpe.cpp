#include "model/tokenizer/bpe.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <queue>
#include <utility>

#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/unicode.hpp"

namespace troupe::model {
namespace {

constexpr token_id none = -1;
/// Up to here looking through all pairs for the next merge beats keeping a queue of them.
constexpr std::size_t short_piece = 48;
/// Symbols that are merged together, so that positions fit 32 bits. No text of a request comes near.
constexpr std::size_t longest_piece = std::size_t{1} << 30;

}  // namespace

std::size_t merge_table::hash(token_id left, token_id right) {
  const auto key =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15ULL >> 24);
}

merge_table::merge_table(const std::vector<merge_rule>& rules) {
  slots_.assign(std::bit_ceil(rules.size() * 2 + 2), merge_rule{0, 0, 0, none});
  for (const auto& rule : rules) {
    auto at = hash(rule.left, rule.right) & (slots_.size() - 1);
    while (slots_[at].merged != none && (slots_[at].left != rule.left || slots_[at].right != rule.right))
      at = (at + 1) & (slots_.size() - 1);
    slots_[at] = rule;
  }
}

const merge_rule* merge_table::find(token_id left, token_id right) const {
  auto at = hash(left, right) & (slots_.size() - 1);
  for (; slots_[at].merged != none; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].left == left && slots_[at].right == right) return &slots_[at];
  return nullptr;
}

bpe::bpe(const vocabulary& known, std::vector<merge_rule> rules, options how)
    : vocabulary_(&known), options_(std::move(how)), merges_(without_reserved(std::move(rules))) {
  for (unsigned b = 0; b < 256; ++b) {
    std::string character;
    unicode::append(character, byte_to_character(static_cast<unsigned char>(b)));
    byte_symbol_[b] = known.find(character).value_or(none);
    if (is_reserved(byte_symbol_[b])) byte_symbol_[b] = none;
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "<0x%02X>", b);
    byte_fallback_[b] = known.find(name.data()).value_or(none);
  }
}

bool bpe::decorated() const { return !options_.continuing_prefix.empty() || !options_.word_suffix.empty(); }

bool bpe::knows_bytes(std::string_view piece) const {
  return !decorated() && std::all_of(piece.begin(), piece.end(),
                                     [this](char b) { return byte_symbol_[static_cast<unsigned char>(b)] != none; });
}

bool bpe::is_reserved(token_id id) const {
  const auto index = static_cast<std::size_t>(id);
  return index < options_.reserved.size() && options_.reserved[index];
}

std::vector<merge_rule> bpe::without_reserved(std::vector<merge_rule> rules) const {
  std::erase_if(rules, [&](const merge_rule& rule) { return is_reserved(rule.merged); });
  return rules;
}

void bpe::encode(std::string_view piece, bool as_bytes, std::vector<token_id>& out) const {
  if (piece.empty()) return;
  // One tokenizer always asks with the same `as_bytes`, so the piece alone is the key.
  const auto hash = std::hash<std::string_view>{}(piece);
  if (cache_.find(piece, hash, out)) return;
  const auto before = out.size();
  encode_anew(piece, as_bytes, out);
  cache_.remember(piece, hash, out.data() + before, out.size() - before);
}

void bpe::encode_anew(std::string_view piece, bool as_bytes, std::vector<token_id>& out) const {
  std::string written;
  if (as_bytes && !knows_bytes(piece)) {
    piece = written = to_byte_alphabet(piece);
    as_bytes = false;
  }
  if (options_.ignore_merges) {
    const auto whole = as_bytes ? vocabulary_->find(to_byte_alphabet(piece)) : vocabulary_->find(piece);
    if (whole && !is_reserved(*whole)) {
      out.push_back(*whole);
      return;
    }
  }
  std::vector<token_id> symbols;
  symbols.reserve(piece.size());
  if (as_bytes)
    for (const char b : piece) symbols.push_back(byte_symbol_[static_cast<unsigned char>(b)]);
  else
    characters(piece, symbols);
  if (symbols.size() <= short_piece)
    merge_short(symbols, out);
  else
    for (std::span<const token_id> rest = symbols; !rest.empty();
         rest = rest.subspan(std::min(rest.size(), longest_piece)))
      merge_long(rest.first(std::min(rest.size(), longest_piece)), out);
}

void bpe::characters(std::string_view piece, std::vector<token_id>& symbols) const {
  std::string decoration;
  bool unknown_pending = false;
  for (std::size_t i = 0; i < piece.size();) {
    const auto length = unicode::at(piece, i).length;
    auto character = piece.substr(i, length);
    if (decorated()) {
      decoration = (i == 0 ? "" : options_.continuing_prefix) + std::string(character) +
                   (i + length == piece.size() ? options_.word_suffix : "");
      character = decoration;
    }
    i += length;
    if (const auto id = vocabulary_->find(character); id && !is_reserved(*id)) {
      if (std::exchange(unknown_pending, false)) symbols.push_back(*options_.unknown);
      symbols.push_back(*id);
    } else if (!(options_.byte_fallback && byte_tokens(character, symbols)) && options_.unknown) {
      if (unknown_pending && !options_.fuse_unknown) symbols.push_back(*options_.unknown);
      unknown_pending = true;
    }
  }
  if (unknown_pending) symbols.push_back(*options_.unknown);
}

bool bpe::byte_tokens(std::string_view character, std::vector<token_id>& symbols) const {
  const auto fallback = [&](char b) { return byte_fallback_[static_cast<unsigned char>(b)]; };
  if (std::any_of(character.begin(), character.end(), [&](char b) { return fallback(b) == none; })) return false;
  for (const char b : character) symbols.push_back(fallback(b));
  return true;
}

void bpe::merge_short(std::vector<token_id>& symbols, std::vector<token_id>& out) const {
  std::array<const merge_rule*, short_piece> rule{};  // of symbol i and the next
  auto count = symbols.size();
  const auto look_up = [&](std::size_t i) {
    rule[i] = i + 1 < count ? merges_.find(symbols[i], symbols[i + 1]) : nullptr;
  };
  for (std::size_t i = 0; i < count; ++i) look_up(i);
  while (true) {
    std::size_t best = count;
    for (std::size_t i = 0; i + 1 < count; ++i)
      if (rule[i] && (best == count || rule[i]->rank < rule[best]->rank)) best = i;
    if (best == count) break;
    symbols[best] = rule[best]->merged;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      rule[i] = rule[i + 1];
    }
    --count;
    look_up(best);
    if (best > 0) look_up(best - 1);
  }
  out.insert(out.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(count));
}

void bpe::merge_long(std::span<const token_id> symbols, std::vector<token_id>& out) const {
  using position = std::int32_t;
  struct symbol {
    token_id id;
    position before, after;
  };
  struct candidate {
    std::uint32_t rank;
    token_id merged;
    position at;
  };
  const auto later = [](const candidate& a, const candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto size = static_cast<position>(symbols.size());
  std::vector<symbol> list(symbols.size());
  const auto node = [&](position i) -> symbol& { return list[static_cast<std::size_t>(i)]; };
  for (position i = 0; i < size; ++i)
    node(i) = {symbols[static_cast<std::size_t>(i)], i - 1, i + 1 < size ? i + 1 : -1};

  std::vector<candidate> first;
  for (position i = 0; i + 1 < size; ++i)
    if (const auto* rule = merges_.find(node(i).id, node(i + 1).id)) first.push_back({rule->rank, rule->merged, i});
  std::priority_queue queue(later, std::move(first));
  const auto consider = [&](position left) {
    if (left < 0 || node(left).after < 0) return;
    if (const auto* rule = merges_.find(node(left).id, node(node(left).after).id))
      queue.push({rule->rank, rule->merged, left});
  };
  while (!queue.empty()) {
    const auto next = queue.top();
    queue.pop();
    auto& left = node(next.at);
    if (left.id == none || left.after < 0) continue;
    auto& right = node(left.after);
    // The pair may have changed since it was queued.
    const auto* rule = merges_.find(left.id, right.id);
    if (!rule || rule->merged != next.merged) continue;
    left.id = next.merged;
    left.after = right.after;
    right.id = none;
    if (left.after >= 0) node(left.after).before = next.at;
    consider(left.before);
    consider(next.at);
  }
  for (position i = 0; i >= 0; i = node(i).after) out.push_back(node(i).id);
}

}  // namespace troupe::model
