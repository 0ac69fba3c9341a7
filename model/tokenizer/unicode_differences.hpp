#pragma once

#include <span>

/// The reference tokenizers' engines know newer characters than PCRE2 10.42 and utf8proc 2.8 (Unicode 14), and in
/// places older tables. These are all the differences, found by asking the reference about every code point, so that
/// ids are equal for every character. Tables are sorted and written by tools/make_unicode_differences.py.
namespace troupe::model::unicode {

struct code_range {
  char32_t first, last;
};
struct added_range {
  char32_t first, last;
  char category[3];  ///< General category, such as "Lo".
};
struct lower_case {
  char32_t upper, lower;
};

std::span<const added_range> added();                       ///< Characters after Unicode 14.
std::span<const code_range> added_han();                    ///< Of these, the script Han.
std::span<const code_range> added_numeric();                ///< Numbers of Rust's char::is_numeric.
std::span<const code_range> added_punctuation();            ///< Punctuation of the Punctuation pre-tokenizer,
std::span<const code_range> not_punctuation();              ///< and what it does not count as such.
std::span<const code_range> no_canonical_decomposition();   ///< Left as they are by every form,
std::span<const code_range> no_compatible_decomposition();  ///< by the compatibility forms.
std::span<const code_range> no_combining_class();           ///< Marks that stay where they are when sorting.
std::span<const lower_case> other_lower_cases();            ///< Lower case that differs.

}  // namespace troupe::model::unicode
