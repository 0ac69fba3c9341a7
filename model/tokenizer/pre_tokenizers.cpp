#include "model/tokenizer/pre_tokenizers.hpp"

#include <algorithm>

#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/overloaded.hpp"

namespace troupe::model {
namespace {

/// A match, or the text between two.
struct part {
  text_range range;
  bool matched;
};

/// Matches and the text between them, in order, covering `length` bytes.
void fill_gaps(const std::vector<text_range>& matches, std::size_t length, bool invert, std::vector<part>& out) {
  out.clear();
  std::size_t done = 0;
  for (const auto& match : matches) {
    if (done != match.begin) out.push_back({{done, match.begin}, invert});
    out.push_back({match, !invert});
    done = match.end;
  }
  if (done != length) out.push_back({{done, length}, invert});
}

/// Joins or drops parts as the behavior says.
void settle(std::vector<part>& parts, split_behavior behavior) {
  switch (behavior) {
    case split_behavior::isolated:
      return;
    case split_behavior::removed:
      std::erase_if(parts, [](const part& p) { return p.matched; });
      return;
    case split_behavior::contiguous:
    case split_behavior::merged_with_previous: {
      std::vector<part> joined;
      bool previous = false;
      for (const auto& p : parts) {
        const bool join = behavior == split_behavior::contiguous ? p.matched == previous : p.matched && !previous;
        if (join && !joined.empty())
          joined.back().range.end = p.range.end;
        else
          joined.push_back(p);
        previous = p.matched;
      }
      parts = std::move(joined);
      return;
    }
    case split_behavior::merged_with_next: {
      std::vector<part> joined;
      bool next = false;
      for (auto p = parts.rbegin(); p != parts.rend(); ++p) {
        if (p->matched && !next && !joined.empty())
          joined.back().range.begin = p->range.begin;
        else
          joined.push_back(*p);
        next = p->matched;
      }
      std::reverse(joined.begin(), joined.end());
      parts = std::move(joined);
      return;
    }
  }
}

/// Cuts every piece by `find`, which fills in the matches inside one piece.
template <class Find>
void cut(cut_text& text, split_behavior behavior, bool invert, Find&& find) {
  std::vector<text_range> pieces, matches;
  std::vector<part> parts;
  pieces.reserve(text.pieces.size());
  for (const auto& piece : text.pieces) {
    const auto view = std::string_view(text.text).substr(piece.begin, piece.end - piece.begin);
    find(view, matches);
    fill_gaps(matches, view.size(), invert, parts);
    settle(parts, behavior);
    for (const auto& p : parts)
      if (p.range.begin != p.range.end) pieces.push_back({piece.begin + p.range.begin, piece.begin + p.range.end});
  }
  text.pieces = std::move(pieces);
}

void find_characters(std::string_view text, bool (*wanted)(char32_t), std::vector<text_range>& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size();) {
    const auto c = unicode::at(text, i);
    if (wanted(c.value)) out.push_back({i, i + c.length});
    i += c.length;
  }
}

/// Replaces every piece by what `rewrite(piece, index)` appends to the new text.
template <class Rewrite>
void rewrite_pieces(cut_text& text, Rewrite&& rewrite) {
  std::string out;
  out.reserve(text.text.size() + text.text.size() / 4);
  for (auto& piece : text.pieces) {
    const auto begin = out.size();
    rewrite(std::string_view(text.text).substr(piece.begin, piece.end - piece.begin), piece.begin, out);
    piece = {begin, out.size()};
  }
  text.text = std::move(out);
}

/// Writes the byte alphabet out, for a step that comes after ByteLevel.
void write_bytes(cut_text& text) {
  if (!text.as_bytes) return;
  text.as_bytes = false;
  rewrite_pieces(text, [](std::string_view piece, std::size_t, std::string& out) { out += to_byte_alphabet(piece); });
}

void byte_level(const byte_level_split& step, cut_text& text) {
  if (step.add_prefix_space)
    rewrite_pieces(text, [](std::string_view piece, std::size_t, std::string& out) {
      if (!piece.starts_with(' ')) out += ' ';
      out += piece;
    });
  if (!step.expression.empty())
    cut(text, split_behavior::isolated, false, [&](std::string_view piece, std::vector<text_range>& matches) {
      step.expression.front().find_all(piece, matches);
    });
  text.as_bytes = true;
}

void metaspace(const metaspace_split& step, cut_text& text) {
  rewrite_pieces(text, [&](std::string_view piece, std::size_t begin, std::string& out) {
    const bool marked = piece.starts_with(' ') || piece.starts_with(step.replacement);
    const bool here = step.prepend == prepend_scheme::always ||
                      (step.prepend == prepend_scheme::first && text.starts_input && begin == 0);
    if (here && !marked) out += step.replacement;
    for (const char c : piece)
      if (c == ' ')
        out += step.replacement;
      else
        out += c;
  });
  if (step.split) {
    const pattern wanted = step.replacement;
    cut(text, split_behavior::merged_with_next, false,
        [&](std::string_view piece, std::vector<text_range>& matches) { find_all(wanted, piece, matches); });
  }
}

void words(cut_text& text) {
  enum class kind { space, word, other };
  const auto kind_of = [](char32_t c) {
    return unicode::is_word(c) ? kind::word : unicode::is_whitespace(c) ? kind::space : kind::other;
  };
  std::vector<text_range> pieces;
  for (const auto& piece : text.pieces) {
    auto last = kind::space;
    for (std::size_t i = piece.begin; i < piece.end;) {
      const auto c = unicode::at(text.text, i);
      const auto now = kind_of(c.value);
      if (now != kind::space && now != last) pieces.push_back({i, i});
      if (now != kind::space) pieces.back().end = i + c.length;
      last = now;
      i += c.length;
    }
  }
  text.pieces = std::move(pieces);
}

void fixed_length(const fixed_length_split& step, cut_text& text) {
  std::vector<text_range> pieces;
  for (const auto& piece : text.pieces)
    for (std::size_t i = piece.begin; i < piece.end;) {
      const auto begin = i;
      for (std::size_t n = 0; n < step.characters && i < piece.end; ++n) i += unicode::at(text.text, i).length;
      pieces.push_back({begin, i});
    }
  text.pieces = std::move(pieces);
}

}  // namespace

const std::string_view gpt2_expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

void run(const std::vector<pre_tokenizer>& chain, cut_text& text) {
  text.pieces.clear();
  if (!text.text.empty()) text.pieces.push_back({0, text.text.size()});
  for (const auto& step : chain) {
    write_bytes(text);
    std::visit(
        overloaded{[&](const split_pattern& split) {
                     cut(text, split.behavior, split.invert,
                         [&](std::string_view piece, std::vector<text_range>& matches) {
                           find_all(split.wanted, piece, matches);
                         });
                   },
                   [&](const split_characters& split) {
                     cut(text, split.behavior, false, [&](std::string_view piece, std::vector<text_range>& matches) {
                       find_characters(piece, split.matches, matches);
                     });
                   },
                   [&](const byte_level_split& level) { byte_level(level, text); },
                   [&](const metaspace_split& meta) { metaspace(meta, text); }, [&](const word_split&) { words(text); },
                   [&](const fixed_length_split& fixed) { fixed_length(fixed, text); }},
        step);
  }
}

}  // namespace troupe::model
