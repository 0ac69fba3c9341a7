#!/usr/bin/env python3
"""Writes model/tokenizer/unicode_differences.cpp: where the engines inside Hugging Face `tokenizers` (Oniguruma, Rust's
standard library, unicode-normalization) read a character otherwise than Unicode 14 does, which PCRE2 10.42 follows
(utf8proc 2.8 follows 15, so nothing is asked of it about the characters that came with 15). Every code point is asked. Needs: pip install tokenizers, and a Python whose unicodedata is 14.0 (3.11)."""

import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0"
POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
CATEGORY = {c: unicodedata.category(chr(c)) for c in POINTS}


def removed_by(pre_tokenizer, points):
    out = set()
    for start in range(0, len(points), 4096):
        chunk = points[start : start + 4096]
        text = "".join("\0" + chr(c) for c in chunk)
        left = set(map(ord, "".join(piece for piece, _ in pre_tokenizer.pre_tokenize_str(text))))
        out |= {c for c in chunk if c not in left}
    return out


def matched(pattern, points):
    return removed_by(pre_tokenizers.Split(Regex(pattern), "removed"), points)


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, kind, rows):
    lines, line = [], " "
    for row in rows:
        if len(line) + len(row) + 2 > 118:
            lines.append(line)
            line = " "
        line += f" {row},"
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};\n"


def plain(name, points):
    return table(name, "code_range", [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(points)])


unassigned = [c for c in POINTS if CATEGORY[c] == "Cn"]
added = {}
for category in "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So".split():
    for a, b in ranges(matched(rf"\p{{{category}}}", unassigned)):
        added[a] = (a, b, category)
new = {c for a, b, _ in added.values() for c in range(a, b + 1)}

numeric = {c for c in POINTS if len(pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str("a" + chr(c))) == 2}
numeric_14 = {c for c in POINTS if CATEGORY[c][0] == "N"}
punctuation = removed_by(pre_tokenizers.Punctuation("removed"), POINTS)
punctuation_14 = {c for c in POINTS if CATEGORY[c][0] == "P" or (c < 128 and not chr(c).isalnum() and 33 <= c <= 126)}

lower_rows, compatible, canonical = [], set(), set()
lower = normalizers.Lowercase()
for c in POINTS:
    got = lower.normalize_str(chr(c))
    if got != chr(c).lower():
        lower_rows.append(f"{{0x{c:X}, 0x{ord(got):X}}}")
for c in POINTS:
    if normalizers.NFD().normalize_str(chr(c)) != unicodedata.normalize("NFD", chr(c)):
        assert normalizers.NFD().normalize_str(chr(c)) == chr(c)
        canonical.add(c)
    elif normalizers.NFKD().normalize_str(chr(c)) != unicodedata.normalize("NFKD", chr(c)):
        assert normalizers.NFKD().normalize_str(chr(c)) == chr(c)
        compatible.add(c)
nfd = normalizers.NFD().normalize_str
no_class = {
    c
    for c in POINTS
    if unicodedata.combining(chr(c))
    and nfd("\u0345" + chr(c)) == "\u0345" + nfd(chr(c))
    and nfd(chr(c) + "\u0334") == nfd(chr(c)) + "\u0334"
}
han = matched(r"\p{Han}", [c for c in new if CATEGORY[c] == "Cn"])
word = matched(r"\w", POINTS)
words = "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]"
odd = word ^ matched(words, POINTS)
print(f"{len(new)} characters added, {len(numeric - numeric_14)} numbers, {len(punctuation_14 - punctuation)} no punctuation,")
print(f"{len(no_class)} marks without a class")
print(f"{len(lower_rows)} lower cases, {len(canonical)}+{len(compatible)} decompositions; \\w off by {len(odd)}: {sorted(odd)[:9]}")

text = f"""// Written by tools/make_unicode_differences.py; do not edit.
#include "model/tokenizer/unicode_differences.hpp"

namespace troupe::model::unicode {{
namespace {{

{table("added_table", "added_range", [f'{{0x{a:X}, 0x{b:X}, "{k}"}}' for a, b, k in sorted(added.values())])}
{plain("added_han_table", han)}
{plain("added_numeric_table", numeric - numeric_14)}
{plain("added_punctuation_table", punctuation - punctuation_14)}
{plain("not_punctuation_table", punctuation_14 - punctuation)}
{plain("no_canonical_table", canonical)}
{plain("no_compatible_table", compatible)}
{plain("no_combining_class_table", no_class)}
{table("lower_table", "lower_case", lower_rows)}
}}  // namespace

std::span<const added_range> added() {{ return added_table; }}
std::span<const code_range> added_han() {{ return added_han_table; }}
std::span<const code_range> added_numeric() {{ return added_numeric_table; }}
std::span<const code_range> added_punctuation() {{ return added_punctuation_table; }}
std::span<const code_range> not_punctuation() {{ return not_punctuation_table; }}
std::span<const code_range> no_canonical_decomposition() {{ return no_canonical_table; }}
std::span<const code_range> no_compatible_decomposition() {{ return no_compatible_table; }}
std::span<const code_range> no_combining_class() {{ return no_combining_class_table; }}
std::span<const lower_case> other_lower_cases() {{ return lower_table; }}

}}  // namespace troupe::model::unicode
"""
root = pathlib.Path(__file__).resolve().parent.parent
(root / "model/tokenizer/unicode_differences.cpp").write_text(text)
