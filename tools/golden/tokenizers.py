"""The byte-level BPE tokenizers of the tiny models: 144 tokens (printable ASCII) or 272 (every byte)."""


def byte_symbols() -> dict[int, str]:
    """GPT-2's printable stand-ins for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in plain}
    for n, b in enumerate(b for b in range(256) if b not in table):
        table[b] = chr(256 + n)
    return table


SPECIAL = ["<|begin|>", "<|end|>", "<|user|>"]
MERGES = ["Ġ t", "h e", "Ġ a", "i n", "Ġt he", "e r", "o n", "Ġ s", "r e", "Ġ w", "n d", "Ġa nd", "a t"]


def vocabulary(size: int) -> tuple[list[str], list[str]]:
    """Tokens in id order, and the merges that make the last of them."""
    symbols = byte_symbols()
    shown = [symbols[b] for b in range(256)] if size == 272 else [symbols[b] for b in [10, *range(32, 127)]]
    tokens = SPECIAL + shown
    merges = []
    pairs = MERGES + [f"{a} {b}" for a in "abcdefgho" for b in "aeiou"]
    for pair in pairs:
        joined = pair.replace(" ", "")
        if len(tokens) < size and joined not in tokens:
            tokens.append(joined)
            merges.append(pair)
    assert len(tokens) == size
    return tokens, merges


def tokenizer_json(size: int) -> dict:
    tokens, merges = vocabulary(size)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True} for i, t in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges},
    }
