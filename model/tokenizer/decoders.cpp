#include "model/tokenizer/decoders.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/lossy_utf8.hpp"
#include "model/tokenizer/overloaded.hpp"

namespace troupe::model {
namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// The byte of "<0x0A>", any letter case.
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    value *= 16;
    if (c >= '0' && c <= '9')
      value += c - '0';
    else if (c >= 'A' && c <= 'F')
      value += c - 'A' + 10;
    else if (c >= 'a' && c <= 'f')
      value += c - 'a' + 10;
    else if (c == '+' && value == 0)
      continue;  // as Rust's integer parser, which takes a sign
    else
      return std::nullopt;
  }
  return static_cast<char>(value);
}

bool one_character(const pattern& wanted) {
  const auto* text = std::get_if<std::string>(&wanted);
  return text && !text->empty() && unicode::at(*text, 0).length == text->size();
}

std::string in_utf8(char32_t c) {
  std::string out;
  unicode::append(out, c);
  return out;
}

}  // namespace

decoding::decoding(const std::vector<decoder>& chain) {
  stages_.reserve(chain.size());
  for (const auto& kind : chain) stages_.push_back({.kind = &kind});
}

void decoding::push(std::string_view token, std::string& out) {
  feed(0, token, out);
  end_token(0, out);
}

void decoding::finish(std::string& out) { finish(0, out); }

void decoding::feed(std::size_t index, std::string_view chunk, std::string& out) {
  if (index == stages_.size()) {
    out += chunk;
    return;
  }
  auto& s = stages_[index];
  const auto next = index + 1;
  std::visit(overloaded{[&](const byte_level_decoder&) { s.held += chunk; },
                        [&](const byte_fallback_decoder&) {
                          if (s.passing) return feed(next, chunk, out);
                          s.held += chunk;
                          if (s.held.size() <= 6) return;
                          release_run(s, next, true, out);
                          feed(next, s.held, out);
                          s.held.clear();
                          s.passing = true;
                        },
                        [&](const fuse_decoder&) { feed(next, chunk, out); },
                        [&](const replace_decoder& replace) {
                          if (one_character(replace.wanted))
                            feed(next, replace_all(replace.wanted, replace.content, chunk), out);
                          else
                            s.held += chunk;
                        },
                        [&](const strip_decoder& strip) { strip_chunk(s, strip, next, chunk, out); },
                        [&](const metaspace_decoder& meta) {
                          const bool drop = s.tokens == 0 && meta.drop_first;
                          feed(next, replace_all(in_utf8(meta.replacement), drop ? "" : " ", chunk), out);
                        },
                        [&](const joining_decoder&) {
                          if (s.tokens > 0) feed(next, " ", out);
                          feed(next, chunk, out);
                        }},
             *s.kind);
}

void decoding::end_token(std::size_t index, std::string& out) {
  if (index == stages_.size()) return;
  auto& s = stages_[index];
  const auto next = index + 1;
  ++s.tokens;
  std::visit(overloaded{[&](const byte_level_decoder&) {
                          auto bytes = from_byte_alphabet(s.held);
                          s.run += bytes ? *bytes : s.held;
                          s.held.clear();
                          std::string text;
                          take_utf8(s.run, text);
                          feed(next, text, out);
                        },
                        [&](const byte_fallback_decoder&) {
                          if (!s.passing) {
                            if (const auto byte = fallback_byte(s.held)) {
                              s.run += *byte;
                              s.held.clear();
                              if (s.run_released || s.run.size() > max_held_byte_run) release_run(s, next, false, out);
                              return;
                            }
                            release_run(s, next, true, out);
                            feed(next, s.held, out);
                            s.held.clear();
                          }
                          s.passing = false;
                          end_token(next, out);
                        },
                        [&](const fuse_decoder&) {},
                        [&](const replace_decoder& replace) {
                          if (!one_character(replace.wanted))
                            feed(next, replace_all(replace.wanted, replace.content, s.held), out);
                          s.held.clear();
                          end_token(next, out);
                        },
                        [&](const strip_decoder&) {
                          s.stripped = s.trailing = 0;
                          s.at_beginning = true;
                          end_token(next, out);
                        },
                        [&](const metaspace_decoder&) { end_token(next, out); },
                        [&](const joining_decoder&) { end_token(next, out); }},
             *s.kind);
}

void decoding::finish(std::size_t index, std::string& out) {
  if (index == stages_.size()) return;
  auto& s = stages_[index];
  const auto next = index + 1;
  std::visit(overloaded{[&](const byte_level_decoder&) {
                          std::string text;
                          finish_utf8(s.run, text);
                          feed(next, text, out);
                          end_token(next, out);
                        },
                        [&](const byte_fallback_decoder&) { release_run(s, next, true, out); },
                        [&](const fuse_decoder&) { end_token(next, out); }, [](const auto&) {}},
             *s.kind);
  finish(next, out);
}

void decoding::release_run(stage& s, std::size_t next, bool ended, std::string& out) {
  if (s.run.empty() && !s.run_released) return;
  std::string text;
  if (s.run_released || !ended) {
    // Longer than we hold back: character by character.
    take_utf8(s.run, text);
    s.run_released = true;
    if (ended) finish_utf8(s.run, text);
  } else if (is_utf8(s.run)) {
    text = std::move(s.run);
  } else {
    for (std::size_t i = 0; i < s.run.size(); ++i) {
      feed(next, replacement_character, out);
      end_token(next, out);
    }
    s.run.clear();
    return;
  }
  feed(next, text, out);
  if (!ended) return;
  end_token(next, out);
  s.run.clear();
  s.run_released = false;
}

void decoding::strip_chunk(stage& s, const strip_decoder& strip, std::size_t next, std::string_view chunk,
                           std::string& out) {
  while (!chunk.empty() && s.at_beginning) {
    const auto c = unicode::at(chunk, 0);
    s.at_beginning = s.stripped < strip.start && c.value == strip.content;
    if (!s.at_beginning) break;
    ++s.stripped;
    chunk.remove_prefix(c.length);
  }
  if (chunk.empty()) return;
  if (strip.stop == 0) return feed(next, chunk, out);

  const auto content = in_utf8(strip.content);
  std::size_t trailing = 0;
  auto kept = chunk;
  while (kept.ends_with(content)) {
    kept.remove_suffix(content.size());
    ++trailing;
  }
  const auto give = [&](std::size_t count) {
    for (; count > 0; --count) feed(next, content, out);
  };
  if (!kept.empty()) {
    give(std::exchange(s.trailing, 0));
    feed(next, kept, out);
  }
  s.trailing += trailing;
  if (s.trailing > strip.stop) {
    give(s.trailing - strip.stop);
    s.trailing = strip.stop;
  }
}

std::string bytes_of(const std::vector<decoder>& chain, std::string_view token) {
  std::string text(token);
  for (const auto& kind : chain) {
    if (std::holds_alternative<byte_level_decoder>(kind)) {
      if (auto bytes = from_byte_alphabet(text)) return *std::move(bytes);
    } else if (std::holds_alternative<byte_fallback_decoder>(kind)) {
      if (const auto byte = fallback_byte(text)) return std::string(1, *byte);
    } else if (const auto* replace = std::get_if<replace_decoder>(&kind)) {
      text = replace_all(replace->wanted, replace->content, text);
    } else if (const auto* meta = std::get_if<metaspace_decoder>(&kind)) {
      text = replace_all(in_utf8(meta->replacement), " ", text);
    }
  }
  return text;
}

}  // namespace troupe::model
