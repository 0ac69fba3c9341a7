#include "model/tokenizer/json_steps.hpp"

#include "model/tokenizer/vocabulary.hpp"

namespace troupe::model {
namespace {

void unsupported(const json_field& step, std::string_view kind) {
  step.at("type").fail(std::string(kind) + " '" + std::string(step.at("type").string()) + "' is not supported",
                       error_kind::unsupported);
}

/// Calls `read` on each member of a Sequence's list.
template <class Read>
void read_sequence(const json_field& list, Read&& read) {
  const auto count = list.array().size();
  for (std::size_t i = 0; i < count && !list.failed(); ++i) read(list.at(i));
}

/// {"String": "..."} or {"Regex": "..."}.
pattern read_pattern(const json_field& from) {
  if (const auto text = from.at("String"); text.present()) return std::string(text.string());
  const auto expression = from.at("Regex");
  if (!expression.present()) {
    from.fail("a pattern must have 'String' or 'Regex'");
    return std::string();
  }
  auto compiled = regex::compile(expression.string(), expression.place());
  if (compiled) return *std::move(compiled);
  expression.fail(compiled.error().message, compiled.error().kind);
  return std::string();
}

split_behavior read_behavior(const json_field& from) {
  constexpr std::pair<std::string_view, split_behavior> names[] = {
      {"Removed", split_behavior::removed},
      {"Isolated", split_behavior::isolated},
      {"MergedWithPrevious", split_behavior::merged_with_previous},
      {"MergedWithNext", split_behavior::merged_with_next},
      {"Contiguous", split_behavior::contiguous}};
  const auto name = from.string();
  for (const auto& [known, behavior] : names)
    if (name == known) return behavior;
  from.fail("behavior '" + std::string(name) + "' is not known");
  return split_behavior::isolated;
}

/// A text of exactly one character.
std::string read_character(const json_field& from) {
  const std::string text(from.string());
  if (text.empty() || unicode::at(text, 0).length != text.size()) from.fail("this must be one character");
  return from.failed() ? std::string("?") : text;
}

prepend_scheme read_prepend(const json_field& from) {
  auto scheme = prepend_scheme::always;
  if (const auto name = from.at("prepend_scheme"); name.present()) {
    if (name.string() == "first")
      scheme = prepend_scheme::first;
    else if (name.string() == "never")
      scheme = prepend_scheme::never;
    else if (name.string() != "always")
      name.fail("prepend_scheme must be always, first or never");
  }
  if (const auto add = from.at("add_prefix_space"); add.present() && !add.boolean()) {
    if (from.at("prepend_scheme").present() && scheme != prepend_scheme::never)
      add.fail("add_prefix_space contradicts prepend_scheme");
    scheme = prepend_scheme::never;
  }
  return scheme;
}

std::vector<regex> gpt2_regex(const json_field& from) {
  auto compiled = regex::compile(gpt2_expression, from.place());
  if (compiled) return {*std::move(compiled)};
  from.fail(compiled.error().message, error_kind::internal);
  return {};
}

post_template surround(std::optional<token_id> before, std::optional<token_id> after) {
  post_template out;
  if (before) out.push_back({false, {*before}});
  out.push_back({true, {}});
  if (after) out.push_back({false, {*after}});
  return out;
}

class post_processor_reader {
 public:
  post_processor_reader(const std::function<bool(token_id)>& known, std::vector<post_template>& out)
      : known_(known), out_(out) {}

  void read(const json_field& from) {
    if (!from.present() || from.failed()) return;
    const auto type = from.at("type", true).string();
    if (type == "Sequence")
      read_sequence(from.at("processors", true), [this](const json_field& step) { read(step); });
    else if (type == "TemplateProcessing")
      out_.push_back(read_template(from));
    else if (type == "BertProcessing" || type == "RobertaProcessing")
      out_.push_back(surround(token(from.at("cls", true).at(1)), token(from.at("sep", true).at(1))));
    else if (type != "ByteLevel")  // that one only trims offsets
      unsupported(from, "post-processor");
    if (out_.size() > max_template_parts) from.fail("there are too many post-processors");
  }

 private:
  token_id token(const json_field& from) {
    const auto id = static_cast<token_id>(from.integer(0, static_cast<std::int64_t>(max_vocabulary) - 1));
    if (!from.failed() && !known_(id)) from.fail("no token has the id " + std::to_string(id));
    return id;
  }

  post_template read_template(const json_field& from) {
    post_template out;
    bool has_text = false;
    const auto pieces = from.at("single", true);
    if (pieces.array().size() > max_template_parts) pieces.fail("the template is too long");
    read_sequence(pieces, [&](const json_field& piece) {
      if (const auto sequence = piece.at("Sequence"); sequence.present()) {
        if (sequence.at("id", true).string() != "A") sequence.at("id").fail("a template for one text can only hold A");
        if (has_text) sequence.fail("a template can hold the text only once", error_kind::unsupported);
        has_text = true;
        out.push_back({true, {}});
        return;
      }
      const auto name = piece.at("SpecialToken", true).at("id", true).string();
      const auto ids = from.at("special_tokens", true).at(name, true).at("ids", true);
      if (ids.array().size() > max_template_parts) ids.fail("too many tokens");
      template_part part;
      read_sequence(ids, [&](const json_field& id) { part.special.push_back(token(id)); });
      out.push_back(std::move(part));
    });
    return out;
  }

  const std::function<bool(token_id)>& known_;
  std::vector<post_template>& out_;
};

}  // namespace

void read_normalizers(const json_field& from, std::vector<normalizer>& out) {
  if (!from.present() || from.failed()) return;
  const auto type = from.at("type", true).string();
  if (type == "Sequence")
    read_sequence(from.at("normalizers", true), [&](const json_field& step) { read_normalizers(step, out); });
  else if (type == "NFC")
    out.emplace_back(unicode_form{unicode::form::nfc});
  else if (type == "NFD")
    out.emplace_back(unicode_form{unicode::form::nfd});
  else if (type == "NFKC")
    out.emplace_back(unicode_form{unicode::form::nfkc});
  else if (type == "NFKD")
    out.emplace_back(unicode_form{unicode::form::nfkd});
  else if (type == "Lowercase")
    out.emplace_back(lowercase_step{});
  else if (type == "Replace")
    out.emplace_back(
        replace_step{read_pattern(from.at("pattern", true)), std::string(from.at("content", true).string())});
  else if (type == "Prepend")
    out.emplace_back(prepend_step{std::string(from.at("prepend", true).string())});
  else if (type == "Strip")
    out.emplace_back(strip_step{from.at("strip_left").boolean_or(true), from.at("strip_right").boolean_or(true)});
  else if (type == "ByteLevel")
    out.emplace_back(byte_level_step{});
  else
    unsupported(from, "normalizer");
}

void read_pre_tokenizers(const json_field& from, std::vector<pre_tokenizer>& out) {
  if (!from.present() || from.failed()) return;
  const auto type = from.at("type", true).string();
  const auto split_at = [&](bool (*matches)(char32_t), split_behavior behavior) {
    out.emplace_back(split_characters{matches, behavior});
  };
  if (type == "Sequence") {
    read_sequence(from.at("pretokenizers", true), [&](const json_field& step) { read_pre_tokenizers(step, out); });
  } else if (type == "Split") {
    out.emplace_back(split_pattern{read_pattern(from.at("pattern", true)), read_behavior(from.at("behavior", true)),
                                   from.at("invert").boolean_or(false)});
  } else if (type == "ByteLevel") {
    auto expression = from.at("use_regex").boolean_or(true) ? gpt2_regex(from) : std::vector<regex>();
    out.emplace_back(byte_level_split{from.at("add_prefix_space").boolean_or(true), std::move(expression)});
  } else if (type == "Metaspace") {
    out.emplace_back(metaspace_split{read_character(from.at("replacement", true)), read_prepend(from),
                                     from.at("split").boolean_or(true)});
  } else if (type == "Digits") {
    const bool individual = from.at("individual_digits").boolean_or(false);
    split_at(unicode::is_numeric, individual ? split_behavior::isolated : split_behavior::contiguous);
  } else if (type == "Punctuation") {
    const auto behavior = from.at("behavior");
    split_at(unicode::is_punctuation, behavior.present() ? read_behavior(behavior) : split_behavior::isolated);
  } else if (type == "WhitespaceSplit") {
    split_at(unicode::is_whitespace, split_behavior::removed);
  } else if (type == "BertPreTokenizer") {
    split_at(unicode::is_whitespace, split_behavior::removed);
    split_at(unicode::is_punctuation, split_behavior::isolated);
  } else if (type == "Whitespace") {
    out.emplace_back(word_split{});
  } else if (type == "CharDelimiterSplit" || type == "Delimiter") {
    out.emplace_back(split_pattern{read_character(from.at("delimiter", true)), split_behavior::removed, false});
  } else if (type == "FixedLength") {
    const auto length = from.at("length");
    out.push_back(
        fixed_length_split{static_cast<std::size_t>(length.present() ? length.integer(1, std::int64_t{1} << 30) : 5)});
  } else {
    unsupported(from, "pre-tokenizer");
  }
}

void read_decoders(const json_field& from, std::vector<decoder>& out) {
  if (from.failed()) return;
  if (!from.present()) {
    out.emplace_back(joining_decoder{});
    return;
  }
  const auto type = from.at("type", true).string();
  if (type == "Sequence") {
    read_sequence(from.at("decoders", true), [&](const json_field& step) { read_decoders(step, out); });
  } else if (type == "ByteLevel") {
    out.emplace_back(byte_level_decoder{});
  } else if (type == "ByteFallback") {
    out.emplace_back(byte_fallback_decoder{});
  } else if (type == "Fuse") {
    out.emplace_back(fuse_decoder{});
  } else if (type == "Replace") {
    out.push_back(
        replace_decoder{read_pattern(from.at("pattern", true)), std::string(from.at("content", true).string())});
  } else if (type == "Strip") {
    const auto count = [&](std::string_view key) {
      return static_cast<std::size_t>(from.at(key, true).integer(0, std::int64_t{1} << 20));
    };
    out.push_back(
        strip_decoder{unicode::at(read_character(from.at("content", true)), 0).value, count("start"), count("stop")});
  } else if (type == "Metaspace") {
    out.emplace_back(metaspace_decoder{unicode::at(read_character(from.at("replacement", true)), 0).value,
                                       read_prepend(from) != prepend_scheme::never});
  } else {
    unsupported(from, "decoder");
  }
}

void read_post_processors(const json_field& from, const std::function<bool(token_id)>& known,
                          std::vector<post_template>& out) {
  post_processor_reader(known, out).read(from);
}

}  // namespace troupe::model
