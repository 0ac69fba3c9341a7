#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// Regular expressions of tokenizer files. They are written for Oniguruma; here PCRE2's JIT runs them, after a
/// translation of what the two engines read differently.
namespace troupe::model {

/// Bytes [begin, end) of some text.
struct text_range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A compiled expression. Immutable and cheap to copy; any thread. Matching takes bounded memory, and where an
/// expression needs more steps than any sane one does, the rest of that text counts as unmatched.
class regex {
 public:
  static result<regex> compile(std::string_view pattern, std::string_view place);

  /// All matches from left to right in valid UTF-8, not overlapping. An empty match is kept, unless it touches the
  /// match before it.
  void find_all(std::string_view text, std::vector<text_range>& out) const;

 private:
  struct program;
  explicit regex(std::shared_ptr<const program> compiled) : program_(std::move(compiled)) {}
  std::shared_ptr<const program> program_;
};

}  // namespace troupe::model
