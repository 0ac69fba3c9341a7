#include "base/json/strict_json.hpp"
#include "model/tokenizer/json_fields.hpp"
#include "model/tokenizer/json_steps.hpp"
#include "model/tokenizer/parts.hpp"

/// Builds a tokenizer from Hugging Face's tokenizer.json, with what tokenizer_config.json adds to it.
namespace troupe::model {
namespace {

constexpr std::size_t json_depth = 64;

class json_loader {
 public:
  json_loader(json_field root, tokenizer::parts& out) : root_(std::move(root)), out_(out) {}

  void load() {
    if (root_.failed()) return;
    if (const auto version = root_.at("version"); version.present() && version.string() != "1.0")
      version.fail("version '" + std::string(version.string()) + "' is not known", error_kind::unsupported);
    read_normalizers(root_.at("normalizer"), out_.normalizers);
    read_pre_tokenizers(root_.at("pre_tokenizer"), out_.pre_tokenizers);
    read_decoders(root_.at("decoder"), out_.decoders);
    const auto model = root_.at("model", true);
    if (root_.failed()) return;
    read_vocabulary(model.at("vocab", true));
    auto added = read_added(root_.at("added_tokens"));
    auto rules = read_merges(model);
    auto options = read_options(model);
    if (root_.failed()) return;
    read_post_processors(
        root_.at("post_processor"), [this](token_id id) { return out_.has(id); }, out_.post_processors);
    if (!root_.failed()) out_.finish(std::move(added), rules, std::move(options));
  }

 private:
  void read_vocabulary(const json_field& vocab) {
    for (const auto& [text, id] : vocab.object()) {
      const auto* number = id.if_int64();
      if (number && out_.model_tokens.add(text, *number)) continue;
      const auto field = vocab.at(std::string_view(text));
      field.integer(0, static_cast<std::int64_t>(max_vocabulary) - 1);
      field.fail("another token has the same id");
      return;
    }
  }

  /// Ids as the reference gives them: those of the vocabulary, and for other tokens the next free ones.
  std::vector<added_token> read_added(const json_field& list) {
    std::vector<added_token> out;
    if (!list.present()) return out;
    std::unordered_map<std::string, std::size_t> known;
    auto next = static_cast<std::int64_t>(out_.model_tokens.count());
    for (std::size_t i = 0; i < list.array().size() && !root_.failed(); ++i) {
      const auto entry = list.at(i);
      added_token token{.id = 0,
                        .content = std::string(entry.at("content", true).string()),
                        .special = entry.at("special").boolean_or(false),
                        .normalized = entry.at("normalized").boolean_or(true),
                        .single_word = entry.at("single_word").boolean_or(false),
                        .strip_left = entry.at("lstrip").boolean_or(false),
                        .strip_right = entry.at("rstrip").boolean_or(false)};
      entry.at("id", true).integer(0, static_cast<std::int64_t>(max_vocabulary) - 1);
      if (root_.failed()) break;
      if (token.content.empty()) continue;
      if (const auto id = out_.find(token.content)) {
        token.id = *id;
      } else if (out_.model_tokens.has(static_cast<token_id>(next)) || !out_.outside_tokens.add(token.content, next)) {
        entry.at("id").fail("the token would get id " + std::to_string(next) + ", which another token has");
        break;
      } else {
        token.id = static_cast<token_id>(next++);
      }
      const auto [place, fresh] = known.try_emplace(token.content, out.size());
      if (fresh)
        out.push_back(std::move(token));
      else
        out[place->second] = std::move(token);
    }
    return out;
  }

  std::vector<merge_rule> read_merges(const json_field& model) {
    std::vector<merge_rule> out;
    if (const auto type = model.at("type"); type.present() && type.string() != "BPE") {
      type.fail("tokenizer model '" + std::string(type.string()) + "' is not supported (BPE is)",
                error_kind::unsupported);
      return out;
    }
    const auto merges = model.at("merges", true);
    const auto prefix = model.at("continuing_subword_prefix");
    const std::size_t prefix_bytes = prefix.present() ? prefix.string().size() : 0;
    const auto& list = merges.array();
    out.reserve(list.size());
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < list.size() && !root_.failed(); ++i) {
      std::string_view left, right;
      if (const auto* line = list[i].if_string()) {
        const std::string_view text = *line;
        if (text.starts_with("#version")) continue;
        const auto space = text.find(' ');
        if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
          merges.at(i).fail("a merge must be two tokens with a space between");
          break;
        }
        left = text.substr(0, space);
        right = text.substr(space + 1);
      } else {
        const auto pair = merges.at(i);
        if (pair.array().size() != 2) pair.fail("a merge must be two tokens");
        left = pair.at(0).string();
        right = pair.at(1).string();
        if (root_.failed()) break;
      }
      const auto left_id = out_.model_tokens.find(left), right_id = out_.model_tokens.find(right);
      std::optional<token_id> merged;
      if (right.size() >= prefix_bytes)
        merged = out_.model_tokens.find(std::string(left) + std::string(right.substr(prefix_bytes)));
      if (!left_id || !right_id || !merged) {
        const auto missing = !left_id    ? std::string(left)
                             : !right_id ? std::string(right)
                                         : std::string(left) + std::string(right);
        merges.at(i).fail("the vocabulary lacks token '" + missing + "' of this merge");
        break;
      }
      out.push_back({*left_id, *right_id, rank++, *merged});
    }
    return out;
  }

  bpe::options read_options(const json_field& model) {
    bpe::options out;
    if (const auto unknown = model.at("unk_token"); unknown.present()) {
      out.unknown = out_.model_tokens.find(unknown.string());
      if (!out.unknown && !root_.failed()) unknown.fail("the vocabulary lacks this token");
    }
    const auto dropout = model.at("dropout");
    if (dropout.present()) dropout.fail("dropout is for training and not supported", error_kind::unsupported);
    out.fuse_unknown = model.at("fuse_unk").boolean_or(false);
    out.byte_fallback = model.at("byte_fallback").boolean_or(false);
    out.ignore_merges = model.at("ignore_merges").boolean_or(false);
    if (const auto prefix = model.at("continuing_subword_prefix"); prefix.present())
      out.continuing_prefix = prefix.string();
    if (const auto suffix = model.at("end_of_word_suffix"); suffix.present()) out.word_suffix = suffix.string();
    return out;
  }

  json_field root_;
  tokenizer::parts& out_;
};

/// BOS and EOS, and add_bos_token and add_eos_token: where either stands, the two decide alone what surrounds a text.
void apply_config(const json_field& config, tokenizer::parts& out) {
  const auto token = [&](std::string_view key) -> std::optional<token_id> {
    auto field = config.at(key);
    if (field.is_object()) field = field.at("content");
    return field.is_string() ? out.find(field.string()) : std::nullopt;
  };
  out.bos = token("bos_token");
  out.eos = token("eos_token");
  const auto add_bos = config.at("add_bos_token"), add_eos = config.at("add_eos_token");
  if (!add_bos.present() && !add_eos.present()) return;
  post_template parts;
  if (add_bos.boolean_or(false) && out.bos) parts.push_back({false, {*out.bos}});
  parts.push_back({true, {}});
  if (add_eos.boolean_or(false) && out.eos) parts.push_back({false, {*out.eos}});
  out.post_processors.assign(1, std::move(parts));
}

}  // namespace

result<std::unique_ptr<const tokenizer>> tokenizer::from_json(std::string_view tokenizer_json,
                                                              std::string_view tokenizer_config_json,
                                                              std::string_view place) {
  auto filled = std::make_unique<parts>();
  std::optional<error> failure;
  auto document = parse_json(tokenizer_json, json_depth, max_vocabulary);
  if (!document) {
    auto& problem = document.error();
    problem.place = problem.place.empty() ? std::string(place) : std::string(place) + ": " + problem.place;
    return std::move(problem);
  }
  json_loader(json_field(&*document, "", place, failure), *filled).load();
  if (failure) return std::move(*failure);

  if (!tokenizer_config_json.empty()) {
    const auto config_place = std::string(place) + " (tokenizer_config.json)";
    auto config = parse_json(tokenizer_config_json, json_depth, max_vocabulary);
    if (!config) {
      auto& problem = config.error();
      problem.place = problem.place.empty() ? config_place : config_place + ": " + problem.place;
      return std::move(problem);
    }
    apply_config(json_field(&*config, "", config_place, failure), *filled);
    if (failure) return std::move(*failure);
  }
  return std::unique_ptr<const tokenizer>(new tokenizer(std::move(filled)));
}

}  // namespace troupe::model
