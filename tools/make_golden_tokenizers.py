#!/usr/bin/env python3
"""Writes tests/data/tokenizers: small tokenizers of every family and what Hugging Face `tokenizers` makes of more than
20,000 strings with each. Needs: pip install tokenizers gguf numpy. Usage: make_golden_tokenizers.py SMOLLM2.gguf

strings.bin      varint count, then each string as varint length and UTF-8.
<name>/tokenizer.json
<name>/golden.bin
    varint count and ids, twice: what add_special_tokens=True puts before and after (the script checks that this is all)
    then for each string: varint number of ids; their 64-bit hash; a flag: ids follow as varints; decoded text without and
    with skip_special_tokens, each as 0 (the string itself), 1 (as without) or 2 and a 64-bit hash
<name>/long.bin  varint number of cases; each: unit (as a string; none for random letters), varint times, varint number
    of ids, hash of the ids
<name>/decode.bin  varint number of cases; each: ids, and their text without and with skip_special_tokens
smollm2/tokens.txt, merges.txt   the default model's vocabulary, a line each
A hash is the sum of (x + 1) * P**i over ids or bytes, modulo 2**64.
"""

import json
import pathlib
import random
import struct
import sys
import unicodedata

import numpy
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/data/tokenizers"
PRIME = 0x9E3779B97F4A7C15
POWERS = numpy.array([pow(PRIME, i, 1 << 64) for i in range(2_100_000)], dtype=numpy.uint64)

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<mask>", "[INST]", "[/INST]", "<tool>"]


# ---- strings ----


def blocks():
    """Runs of assigned letters, marks, numbers and symbols, by the first word of their names: scripts, near enough."""
    by_name = {}
    for c in range(0x20, 0x110000):
        if 0xD800 <= c < 0xE000:
            continue
        name = unicodedata.name(chr(c), "")
        if name:
            by_name.setdefault(name.split()[0].split("-")[0], []).append(chr(c))
    return {name: chars for name, chars in by_name.items() if len(chars) >= 8}


def make_strings(rng, corpus):
    out = ["", " ", "a", "\n", "\0", "\ufffd"]
    add = out.append
    scripts = blocks()
    for chars in scripts.values():
        for _ in range(8):
            words = ["".join(rng.choices(chars, k=rng.randint(1, 8))) for _ in range(rng.randint(1, 4))]
            add(rng.choice([" ", "  ", ", ", "\n", "-", ""]).join(words))
        add(rng.choice(chars) + "1" + rng.choice(chars) + " 's" + rng.choice(chars))
    people, skins, joiner, selector = "👨👩🧑👧👦", "🏻🏼🏽🏾🏿", "\u200d", "\ufe0f"
    for _ in range(400):
        person = lambda: rng.choice(people) + rng.choice(["", rng.choice(skins)])
        add(rng.choice([
            joiner.join(person() for _ in range(rng.randint(1, 4))),
            person() + joiner + rng.choice("⚕⚖✈🎓🚀") + selector,
            "".join(chr(0x1F1E6 + rng.randrange(26)) for _ in range(rng.randint(1, 6))),
            "".join(rng.choice("0123456789#*") + selector + "\u20e3" for _ in range(3)),
            "🏴" + "".join(chr(0xE0000 + ord(c)) for c in "gbsct") + chr(0xE007F),
            "ok " + rng.choice("😀🤖❤☕") * rng.randint(1, 9) + selector + "!",
        ]))
    marks = [chr(c) for c in range(0x300, 0x370)] + [chr(c) for c in range(0x5B0, 0x5BD)] + list("\u3099\u309a\u0f71\u0f74")
    for _ in range(800):
        base = rng.choice("aeiouAEIOUnscyzåéが가ㅏ1 ßﬁſ")
        add("".join(base + "".join(rng.choices(marks, k=rng.randint(0, 5))) for _ in range(rng.randint(1, 5))))
    spaces = " \t\n\r\v\f\u0085\u00a0\u1680\u180e\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\u2060"
    for _ in range(1500):
        run = "".join(rng.choice(spaces) for _ in range(rng.randint(1, 9)))
        add(rng.choice(["", "x", "é", "7", "."]) + run + rng.choice(["", "y", "'s", "12", "!\n"]) + run[: rng.randint(0, 3)])
    for _ in range(600):
        add("".join(rng.choice([" ", " ", "  ", "\n", "\r\n", "\t"]) * rng.randint(1, 40) for _ in range(rng.randint(1, 3))) + "z")
    digits = "0123456789٠١٢٣४५६七十²½Ⅷ①𝟘𝟗０９"
    for _ in range(1000):
        add("".join(rng.choice(digits[:10] if rng.random() < 0.8 else digits) for _ in range(rng.randint(1, 60))))
        add(rng.choice(["$", "-", "v", "€ "]) + "{:,.{}f}".format(rng.random() * 10 ** rng.randint(0, 15), rng.randint(0, 6)))
    for _ in range(800):
        add("".join(chr(rng.randrange(0, 0xA0)) for _ in range(rng.randint(1, 30))))
    contractions = ["'s", "'S", "'re", "'RE", "'Ll", "'ve", "'m", "'D", "'t", "’s", "'ſ", "'\u017fx", "''s", "'S's", "'K", "'ß"]
    for _ in range(800):
        add("".join(rng.choice(["I", "they", " we", "ÉTÉ", "ß", "3", " "]) + rng.choice(contractions) for _ in range(rng.randint(1, 4))))
    for _ in range(2500):
        parts = []
        for _ in range(rng.randint(1, 6)):
            token = rng.choice(SPECIALS)
            if rng.random() < 0.15:
                token = token[: rng.randint(1, len(token))]
            parts.append(rng.choice(["", " ", "  ", "\n", "a", "é", "word", "1", "<", "|>", "_", "​"]) + token)
        add("".join(parts) + rng.choice(["", " ", "x", " hi there", "\n\n", "."]))
    for _ in range(4500):
        start = rng.randrange(len(corpus) - 200)
        add(corpus[start : start + rng.randint(1, rng.choice([20, 60, 200]))])
    mixed = [chars for chars in scripts.values()]
    for _ in range(2500):
        text = ""
        for _ in range(rng.randint(1, 12)):
            kind = rng.random()
            if kind < 0.3:
                text += "".join(rng.choices(rng.choice(mixed), k=rng.randint(1, 3)))
            elif kind < 0.6:
                text += rng.choice(["the", "The", "and ", " of", "def f(x):", "\treturn", "==", "!=", "/*", "https://", "a_b", "fooBar", "XMLHttp"])
            elif kind < 0.8:
                text += rng.choice(spaces)
            else:
                text += chr(rng.choice([rng.randrange(0x20, 0x7F), rng.randrange(0x80, 0x800), rng.randrange(0x1F300, 0x1FAFF)]))
        add(text)
    for _ in range(300):  # what lone surrogates become on the way in
        add("".join(rng.choice(["\ufffd", "a", "\ufffd\ufffd", " ", "é"]) for _ in range(rng.randint(1, 8))))
    # Every code point there is, unassigned ones sparsely.
    row = ""
    for c in range(1, 0x110000):
        if 0xD800 <= c < 0xE000 or (0xE000 <= c < 0xF8FF or c > 0x323B0) and c % 997 or 0x20000 <= c < 0x30000 and c % 7:
            continue
        row += chr(c)
        if len(row) == 40:
            add(row)
            row = ""
    unique = list(dict.fromkeys(out))
    rest = [s for s in out if s not in set(unique)]
    assert not rest
    return unique


# ---- tokenizers ----


def added(tokenizer, *tokens, special=True, **how):
    getattr(tokenizer, "add_special_tokens" if special else "add_tokens")([AddedToken(t, special=special, **how) for t in tokens])


def trained(tokenizer, texts, size, **how):
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **how)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def byte_level(texts, size, normalizer, pre_tokenizer, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trained(tokenizer, texts, size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return tokenizer


def gpt2(texts):
    t = byte_level(texts, 1200, None, pre_tokenizers.ByteLevel(add_prefix_space=False))
    added(t, "<|endoftext|>")
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def roberta(texts):
    t = byte_level(texts, 900, None, pre_tokenizers.ByteLevel(add_prefix_space=True))
    added(t, "<s>", "</s>", "<unk>")
    added(t, "<mask>", lstrip=True)
    added(t, "word", special=False, single_word=True)
    added(t, "<tool>", special=False, rstrip=True, normalized=False)
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    return t


def llama3(texts):
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    t = byte_level(texts, 1500, None, pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                   ignore_merges=True)
    added(t, "<s>", "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    bos = t.token_to_id("<s>")
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True),
                                            processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", bos)])])
    return t


def qwen2(texts):
    split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
    t = byte_level(texts, 1500, normalizers.NFC(),
                   pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    added(t, "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    added(t, "<tool>", special=False, normalized=False)
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def deepseek(texts):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in DEEPSEEK]
    t = byte_level(texts, 1200, normalizers.Sequence([]),
                   pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    added(t, "<s>", "</s>", normalized=True)
    t.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [(s, t.token_to_id(s)) for s in ("<s>", "</s>")])
    return t


def gpt4o(texts):
    split = pre_tokenizers.Split(Regex(GPT4O), "removed", invert=True)
    t = byte_level(texts, 1000, None, pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    added(t, "<|endoftext|>")
    return t


def sentence_piece(texts, size):
    """Vocabulary as a SentencePiece BPE model has it (unknown, control and byte tokens first, score = -rank), and merges
    as they are derived from such a vocabulary: every way to cut a piece in two, best piece first."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    trained(t, texts, size, limit_alphabet=300)
    learnt = sorted(t.get_vocab().items(), key=lambda item: item[1])
    letters = [piece for piece, _ in learnt if len(piece) == 1]
    pieces = [piece for piece, _ in learnt if len(piece) > 1]
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    base = len(names)
    vocab = {name: i for i, name in enumerate(names + pieces + letters)}
    merges = []
    for piece in pieces:
        ways = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += sorted(ways, key=lambda way: (vocab[way[0]], vocab[way[1]]))
    scores = [0.0] * base + [-float(i) for i in range(len(pieces) + len(letters))]
    return vocab, merges, scores


def llama2(texts, shared):
    vocab, merges, scores = shared
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    added(t, "<unk>", "<s>", "</s>", normalized=False)
    t.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    return t


def mistral(texts, shared):
    vocab, merges, _ = shared
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    added(t, "<unk>", "<s>", "</s>", "[INST]", "[/INST]", normalized=False)
    t.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    return t


def zoo(texts):
    """Normalizers one after another, words, unknown characters, no bytes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\d{2,}"), "#"),
                                         normalizers.Replace("--", "—"), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"),
                                               pre_tokenizers.Digits(False), pre_tokenizers.Metaspace("▁", "always", True)])
    t.decoder = decoders.Metaspace()
    trained(t, texts, 800, special_tokens=["<unk>"], limit_alphabet=200)
    added(t, "<mask>", lstrip=True, rstrip=True)
    added(t, "Word", special=False, normalized=True)
    return t


def zoo_nfd(texts):
    """Split's behaviors, decomposed characters, and no decoder."""
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Prepend("^"), normalizers.Replace("\n", " ")])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split(Regex(r"[,;.]\s*"), "merged_with_previous"),
        pre_tokenizers.Split(Regex(r"\w+"), "contiguous"), pre_tokenizers.Split("-", "removed"),
        pre_tokenizers.Split(Regex(r"[^\W\d]+"), "isolated", invert=True), pre_tokenizers.Digits(True)])
    trained(t, texts, 700, special_tokens=["<unk>"], limit_alphabet=300)
    added(t, "<s>", "</s>", normalized=True)
    return t


def zoo_nfkd(texts):
    """The byte alphabet as a normalizer, whole words, suffixes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Strip(left=False, right=True)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("isolated")])
    trained(t, texts, 600, special_tokens=["<unk>"], limit_alphabet=300, end_of_word_suffix="</w>")
    added(t, "<s>")
    t.post_processor = processors.BertProcessing(("<s>", t.token_to_id("<s>")), ("<unk>", 0))
    return t


def smollm2(path):
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    tokens = [fields["tokenizer.ggml.tokens"].contents(i) for i in range(len(fields["tokenizer.ggml.tokens"].data))]
    merges = [fields["tokenizer.ggml.merges"].contents(i) for i in range(len(fields["tokenizer.ggml.merges"].data))]
    types = fields["tokenizer.ggml.token_type"].contents()
    specials = [token for token, kind in zip(tokens, types) if kind == 3]
    assert tokens[: len(specials)] == specials
    t = Tokenizer(models.BPE({s: i for i, s in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    added(t, *specials, normalized=False)
    folder = OUT / "smollm2"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.txt").write_text("\n".join(tokens) + "\n", newline="\n")
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", newline="\n")
    return t


# ---- golden files ----


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def packed(items):
    return b"".join(map(varint, items))


def hashed(numbers):
    values = numpy.asarray(numbers, dtype=numpy.uint64) + numpy.uint64(1)
    return struct.pack("<Q", int((values * POWERS[: len(values)]).sum(dtype=numpy.uint64)) if len(values) else 0)


def hashed_text(text):
    return hashed(numpy.frombuffer(text.encode(), dtype=numpy.uint8))


def surroundings(tokenizer):
    around, inner = tokenizer.encode("a").ids, tokenizer.encode("a", add_special_tokens=False).ids
    for start in range(len(around) - len(inner) + 1):
        if around[start : start + len(inner)] == inner:
            return around[:start], around[start + len(inner) :]
    raise AssertionError


def write_golden(name, tokenizer, strings, sample):
    before, after = surroundings(tokenizer)
    out = [varint(len(before)), packed(before), varint(len(after)), packed(after)]
    for i, text in enumerate(strings):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text).ids == before + ids + after, text
        plain, skipped = tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids, skip_special_tokens=True)
        out += [varint(len(ids)), hashed(ids)]
        out += [b"\1", packed(ids)] if i % sample == 0 and len(ids) < 100 else [b"\0"]
        out.append(b"\0" if plain == text else b"\2" + hashed_text(plain))
        out.append(b"\0" if skipped == text else b"\1" if skipped == plain else b"\2" + hashed_text(skipped))
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "golden.bin").write_bytes(b"".join(out))
    write_long(name, tokenizer)
    write_decode(name, tokenizer)
    print(name, tokenizer.get_vocab_size(), "tokens,", sum(map(len, out)), "bytes", flush=True)


def random_letters(count):
    """Made again by the test."""
    state, out = 5, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        out.append(chr(97 + (state >> 16) % 26))
    return "".join(out)


def write_long(name, tokenizer):
    cases = [("a", 1_000_000), (" ", 200_000), ("a\u0301", 100_000), ("👩\u200d🚀", 30_000), ("\n", 100_000), ("7", 100_000),
             ("lorem ipsum ", 20_000), ("漢", 60_000), ("a\u0316\u0301", 60_000), ("", 200_000)]
    out = [varint(len(cases))]
    for unit, times in cases:
        ids = tokenizer.encode(unit * times if unit else random_letters(times), add_special_tokens=False).ids
        out += [varint(len(unit.encode())), unit.encode(), varint(times), varint(len(ids)), hashed(ids)]
    (OUT / name / "long.bin").write_bytes(b"".join(out))


def write_decode(name, tokenizer):
    rng = random.Random(11)
    size = max(tokenizer.get_vocab().values()) + 1
    rows = []
    for _ in range(120):
        ids = [rng.randrange(rng.choice([300, size])) for _ in range(rng.randint(0, 24))]
        texts = [tokenizer.decode(ids, skip_special_tokens=skip).encode() for skip in (False, True)]
        rows.append(varint(len(ids)) + packed(ids) + b"".join(varint(len(t)) + t for t in texts))
    (OUT / name / "decode.bin").write_bytes(varint(len(rows)) + b"".join(rows))


def main():
    rng = random.Random(20_000)
    text = (ROOT / "tests/data/text").glob("*.txt")
    prose = "\n".join(p.read_text()[:300_000] for p in sorted(text))
    code = "\n".join(p.read_text() for p in sorted((ROOT / "base").rglob("*.?pp")))
    scripts = list(blocks().values())
    exotic = [" ".join("".join(rng.choices(chars[:40], k=4)) for _ in range(40)) for chars in scripts for _ in range(3)]
    texts = prose.splitlines() + code.splitlines() + exotic
    strings = make_strings(rng, prose + code)
    OUT.mkdir(parents=True, exist_ok=True)
    encoded = [s.encode() for s in strings]
    (OUT / "strings.bin").write_bytes(varint(len(strings)) + b"".join(varint(len(s)) + s for s in encoded))
    print(len(strings), "strings,", sum(map(len, encoded)), "bytes", flush=True)
    assert len(strings) >= 20_000

    write_golden("smollm2", smollm2(sys.argv[1]), strings, 4)
    shared = sentence_piece(texts, 1500)
    (OUT / "llama2").mkdir(exist_ok=True)
    (OUT / "llama2/scores.json").write_text(json.dumps(shared[2]))
    families = [gpt2, roberta, llama3, qwen2, deepseek, gpt4o, llama2, mistral, zoo, zoo_nfd, zoo_nfkd]
    for family in families:
        tokenizer = family(texts, shared) if family in (llama2, mistral) else family(texts)
        folder = OUT / family.__name__
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")))
        write_golden(family.__name__, tokenizer, strings, 20)


if __name__ == "__main__":
    main()
