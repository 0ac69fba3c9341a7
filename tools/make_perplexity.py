#!/usr/bin/env python3
"""Make the perplexity test's data: a slice of public-domain prose, its token ids, and transformers' fp32 result on it.

    apt-get download dict-devil && dpkg -x dict-devil_*.deb devil
    python3 tools/make_perplexity.py devil/usr/share/dictd/devil.dict.dz models/SmolLM2-135M-Instruct.Q4_1.gguf

Needs (PyPI): torch, transformers, accelerate, gguf, tokenizers. Writes tests/data/text/devils-dictionary.txt and
perplexity.json: ids, the window length, and for each window the sum of -log p over all its tokens but the first, each
window read from an empty context. Takes some minutes.
"""
import argparse
import gzip
import json
from pathlib import Path

import gguf
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

TOKENS, WINDOW = 20480, 512
OUT = Path(__file__).resolve().parent.parent / "tests/data/text"


def tokenizer_of(path: Path) -> Tokenizer:
    """Hugging Face's BPE over the file's vocabulary, with SmolLM's pre-tokenizer: single digits, then GPT-2's."""
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ", 1)) for m in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return tokenizer


def slice_of(book: str, tokenizer: Tokenizer) -> tuple[str, list[int]]:
    """Whole entries from the first one on, until they hold TOKENS tokens; and the first TOKENS ids."""
    entries = book[book.index("ABASEMENT, n."):].split("\n\n")
    low, high = 1, len(entries)
    while low < high:
        middle = (low + high) // 2
        enough = len(tokenizer.encode("\n\n".join(entries[:middle])).ids) >= TOKENS
        low, high = (low, middle) if enough else (middle + 1, high)
    text = "\n\n".join(entries[:low]) + "\n"
    return text, tokenizer.encode(text).ids[:TOKENS]


@torch.no_grad()
def window_losses(model, ids: list[int]) -> list[float]:
    losses = []
    for at in range(0, len(ids), WINDOW):
        window = torch.tensor(ids[at:at + WINDOW])
        logits = model(window[None]).logits[0, :-1].double()
        losses.append(float(torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum")))
        print(f"{at + WINDOW} tokens, perplexity {torch.tensor(losses).sum().div(len(losses) * (WINDOW - 1)).exp():.4f}", flush=True)
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    text, ids = slice_of(gzip.decompress(options.book.read_bytes()).decode(), tokenizer_of(options.model))
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model.parent, gguf_file=options.model.name,
                                                              dtype=torch.float32, attn_implementation="eager").eval()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "devils-dictionary.txt").write_text(text)
    result = {"window": WINDOW, "losses": window_losses(model, ids), "ids": ids}
    (OUT / "perplexity.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
