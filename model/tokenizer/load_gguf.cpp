#include <cmath>

#include "model/tokenizer/gguf_families.hpp"
#include "model/tokenizer/lossy_utf8.hpp"
#include "model/tokenizer/parts.hpp"

/// Builds a tokenizer from GGUF's tokenizer.ggml.* metadata: byte-level BPE ("gpt2") from tokens and merges, or
/// SentencePiece-style BPE ("llama") from tokens and scores.
namespace troupe::model {
namespace {

enum token_type : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class gguf_loader {
 public:
  gguf_loader(const tokenizer::gguf_vocabulary& in, std::string_view place, tokenizer::parts& out)
      : in_(in), place_(place), out_(out) {}

  result<void> load() {
    if (in_.tokens.empty()) return fail("tokens", "there are no tokens");
    if (in_.tokens.size() > max_vocabulary)
      return fail("tokens",
                  std::to_string(in_.tokens.size()) + " tokens are more than " + std::to_string(max_vocabulary));
    if (!in_.types.empty() && in_.types.size() != in_.tokens.size())
      return fail("token_type", "there are " + std::to_string(in_.types.size()) + " types for " +
                                    std::to_string(in_.tokens.size()) + " tokens");
    if (auto added = tokens(); !added) return added;
    out_.bos = known(in_.bos);
    out_.eos = known(in_.eos);
    if (in_.model == "gpt2") return byte_level();
    if (in_.model == "llama") return sentence_piece();
    return error{error_kind::unsupported, "tokenizer model '" + in_.model + "' is not supported (gpt2 and llama are)",
                 key("model")};
  }

 private:
  std::string key(const std::string& name) const { return std::string(place_) + ": tokenizer.ggml." + name; }
  error fail(const std::string& name, std::string message) const {
    return {error_kind::corrupt, std::move(message), key(name)};
  }
  std::int32_t type(std::size_t i) const { return in_.types.empty() ? std::int32_t{normal} : in_.types[i]; }
  std::optional<token_id> known(std::optional<token_id> id) const { return id && out_.has(*id) ? id : std::nullopt; }

  result<void> tokens() {
    for (std::size_t i = 0; i < in_.tokens.size(); ++i) {
      const auto text = in_.tokens[i];
      const auto name = "tokens[" + std::to_string(i) + "]";
      if (!is_utf8(text)) return fail(name, "the token is not UTF-8");
      const bool added = type(i) == control || type(i) == user_defined || type(i) == unknown;
      // Only what text may become by itself is known to the model; an unknown token still decodes.
      auto& where = added ? out_.outside_tokens : out_.model_tokens;
      if ((added ? out_.model_tokens : out_.outside_tokens).find(text) ||
          !where.add(text, static_cast<std::int64_t>(i)))
        return fail(name, "the token occurs twice");
      if (added && !text.empty())
        added_.push_back(
            {.id = static_cast<token_id>(i), .content = std::string(text), .special = type(i) != user_defined});
    }
    return {};
  }

  result<void> byte_level() {
    const auto* family = find_gguf_family(in_.pre);
    if (!family) return error{error_kind::unsupported, "pre-tokenizer '" + in_.pre + "' is not known", key("pre")};
    if (family->nfc) out_.normalizers.emplace_back(unicode_form{unicode::form::nfc});
    if (family->single_digits)
      out_.pre_tokenizers.emplace_back(split_characters{unicode::is_numeric, split_behavior::isolated});
    for (const auto expression : family->expressions) {
      auto compiled = regex::compile(expression, key("pre"));
      if (!compiled) return std::move(compiled).error();
      out_.pre_tokenizers.emplace_back(split_pattern{*std::move(compiled), split_behavior::isolated, false});
    }
    out_.pre_tokenizers.emplace_back(byte_level_split{in_.add_space_prefix.value_or(false), {}});
    out_.decoders.emplace_back(byte_level_decoder{});

    std::vector<merge_rule> rules;
    rules.reserve(in_.merges.size());
    for (std::size_t i = 0; i < in_.merges.size(); ++i) {
      const auto merge = in_.merges[i];
      // A token may itself begin with a space, never be empty.
      const auto space = merge.find(' ', 1);
      if (space == std::string_view::npos) return fail(merge_name(i), "there are no two tokens with a space between");
      const auto left = merge.substr(0, space), right = merge.substr(space + 1);
      const auto left_id = find(left), right_id = find(right), merged = find(std::string(left) + std::string(right));
      if (!left_id || !right_id || !merged) return fail(merge_name(i), "the vocabulary lacks a token of this merge");
      rules.push_back({*left_id, *right_id, static_cast<std::uint32_t>(i), *merged});
    }
    surround(family->begins_with_bos);
    out_.finish(std::move(added_), rules, {.ignore_merges = family->ignore_merges});
    return {};
  }

  result<void> sentence_piece() {
    if (in_.scores.size() != in_.tokens.size())
      return fail("scores", "there are " + std::to_string(in_.scores.size()) + " scores for " +
                                std::to_string(in_.tokens.size()) + " tokens");
    for (std::size_t i = 0; i < in_.scores.size(); ++i)
      if (std::isnan(in_.scores[i])) return fail("scores[" + std::to_string(i) + "]", "the score is not a number");
    const bool prefix = in_.add_space_prefix.value_or(true);
    const std::string mark = "\xE2\x96\x81";
    if (prefix) out_.normalizers.emplace_back(prepend_step{mark});
    out_.normalizers.emplace_back(replace_step{" ", mark});
    out_.decoders.emplace_back(replace_decoder{mark, " "});
    out_.decoders.emplace_back(byte_fallback_decoder{});
    out_.decoders.emplace_back(fuse_decoder{});
    if (prefix) out_.decoders.emplace_back(strip_decoder{U' ', 1, 0});
    surround(true);
    const auto rules = rules_by_score();
    out_.finish(std::move(added_), rules, {.unknown = known(in_.unknown), .fuse_unknown = true, .byte_fallback = true});
    return {};
  }

  /// Every way to make a token out of two; the better the token's score, the earlier. Equal scores are equal in rank,
  /// so that the leftmost goes first.
  std::vector<merge_rule> rules_by_score() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < in_.tokens.size(); ++i)
      if (mergeable(i)) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return in_.scores[a] > in_.scores[b]; });
    std::vector<merge_rule> rules;
    std::uint32_t rank = 0;
    for (std::size_t n = 0; n < order.size(); ++n) {
      if (n > 0 && in_.scores[order[n]] != in_.scores[order[n - 1]]) ++rank;
      const auto text = in_.tokens[order[n]];
      // Tokens longer than this come from no trainer, and trying every cut of a huge one would take for ever.
      if (text.size() > 1024) continue;
      for (std::size_t at = text.empty() ? 0 : unicode::at(text, 0).length; at < text.size();
           at += unicode::at(text, at).length) {
        const auto left = out_.model_tokens.find(text.substr(0, at)), right = out_.model_tokens.find(text.substr(at));
        if (left && right && mergeable(static_cast<std::size_t>(*left)) && mergeable(static_cast<std::size_t>(*right)))
          rules.push_back({*left, *right, rank, static_cast<token_id>(order[n])});
      }
    }
    return rules;
  }
  bool mergeable(std::size_t i) const { return type(i) == normal || type(i) == unused; }

  void surround(bool default_bos) {
    post_template parts;
    if (in_.add_bos.value_or(default_bos) && out_.bos) parts.push_back({false, {*out_.bos}});
    parts.push_back({true, {}});
    if (in_.add_eos.value_or(false) && out_.eos) parts.push_back({false, {*out_.eos}});
    if (parts.size() > 1) out_.post_processors.push_back(std::move(parts));
  }

  std::optional<token_id> find(std::string_view text) const { return out_.find(text); }
  static std::string merge_name(std::size_t i) { return "merges[" + std::to_string(i) + "]"; }

  const tokenizer::gguf_vocabulary& in_;
  std::string_view place_;
  tokenizer::parts& out_;
  std::vector<added_token> added_;
};

}  // namespace

result<std::unique_ptr<const tokenizer>> tokenizer::from_gguf(const gguf_vocabulary& vocabulary,
                                                              std::string_view place) {
  auto filled = std::make_unique<parts>();
  if (auto loaded = gguf_loader(vocabulary, place, *filled).load(); !loaded) return std::move(loaded).error();
  return std::unique_ptr<const tokenizer>(new tokenizer(std::move(filled)));
}

}  // namespace troupe::model
