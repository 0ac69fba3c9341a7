#!/usr/bin/env python3
"""Make the golden data of the conformance suite: tiny seeded models, and what transformers computes with them in fp32.

    python3 tools/make_golden.py [--out tests/data/models] [--only NAME ...]

Needs (PyPI): torch, transformers >= 5, gguf, safetensors, numpy. The suite itself needs none of them. Writes a folder or
GGUF file for every row of golden/families.py, `index.json` (prompts, greedy continuations, what each model is) and one
`<name>.logits` file per distinct model: logits at every position of its prompts, prompt after prompt, as little-endian
24-bit integers in units of 2^-18.

Every folder with plain weights, and every GGUF file that transformers can read, is read back by transformers and must give
the same logits; every feature in a row's `without` must change them. So the data tests what it says it tests.
"""
import argparse
import json
import logging
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent))
from golden import families, gguf_file, hf_folder, reference, weights  # noqa: E402

UNIT = 2.0**-18
READABLE_GGUF = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM")


def save_logits(path: Path, blocks: list[np.ndarray]) -> None:
    values = np.concatenate([b.reshape(-1) for b in blocks])
    fixed = np.round(values / UNIT).astype(np.int64)
    assert np.abs(fixed).max() < 2**23, "logits beyond +-32"
    path.write_bytes(fixed.astype("<i4").reshape(-1, 1).view(np.uint8)[:, :3].tobytes())


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


def check_features(variant, exact, prompts) -> None:
    """Each change in `without` must be visible in the logits of the longest prompt, and so must the prompt's first token."""
    prompt, logits, _ = prompts[-1]
    for change in variant.without:
        other = reference.new_model(variant.architecture, {**variant.config, **change}, variant.vocab)
        reference.load(other, exact)
        seen = difference(reference.prompt_logits(other, prompt), logits)
        assert seen > 0.05, f"{variant.name}: {change} changes logits by {seen} only"
    biases = [name for name in exact if name.endswith("e_score_correction_bias")]
    if biases:
        other = reference.new_model(variant.architecture, variant.config, variant.vocab)
        reference.load(other, {**exact, **{name: np.zeros_like(exact[name]) for name in biases}})
        assert difference(reference.prompt_logits(other, prompt), logits) > 0.05, f"{variant.name}: biases change nothing"


def check_read_back(variant, config, path: Path, prompts) -> str:
    """transformers' own reading of what was written; of a GGUF file the tensors only, for it reads few metadata keys."""
    keys = dict(dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    if variant.kind == "folder":
        if variant.dtype not in hf_folder.STORAGE:
            return "not read back (scaled weights)"
        model = transformers.AutoModelForCausalLM.from_pretrained(path, **keys)
    elif variant.architecture in READABLE_GGUF:
        model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, config=config, **keys)
    else:
        return "not read back (transformers reads no such file)"
    prompt, logits, _ = prompts[-1]
    seen = difference(reference.prompt_logits(model.eval(), prompt), logits)
    assert seen < 1e-3, f"{variant.name}: transformers reads it back with difference {seen}"
    return f"read back within {seen:.1e}"


def make(variant, out: Path, done: dict) -> dict:
    base = variant.seed_of or variant.name
    model = reference.new_model(variant.architecture, variant.config, variant.vocab)
    margins = reference.RouterMargin(model)
    values = weights.build(model, base)
    path = out / variant.name
    if variant.kind == "folder":
        tensors, exact = hf_folder.file_tensors(variant, values)
        hf_folder.write(variant, model.config, tensors, path)
    else:
        tensors, exact = gguf_file.file_tensors(variant, model.config, values)
        gguf_file.write(variant, model.config, tensors, path)
    if variant.seed_of:
        prompts = done[base]
    else:
        reference.load(model, exact)
        prompts = reference.choose_prompts(model, variant.vocab, zlib.crc32(base.encode()), margins)
        experts = getattr(model.config, "num_experts", getattr(model.config, "num_local_experts", 0)) or 0
        routers = sum(reference.is_router(m) for m in model.modules())
        assert len(margins.used) == experts * routers, f"{variant.name}: an expert is never used"
        check_features(variant, exact, prompts)
        save_logits(out / f"{base}.logits", [p[1] for p in prompts])
    done[variant.name] = prompts
    note = check_read_back(variant, model.config, path, prompts)
    spread = max(float(p[1].max() - p[1].min()) for p in prompts)
    print(f"{variant.name}: logits span {spread:.1f}; {note}", flush=True)
    return {"name": variant.name, "architecture": variant.architecture, "features": variant.features,
            "file": describe_file(variant), "vocab": variant.vocab, "logits": f"{base}.logits",
            "prompts": [p[0] for p in prompts], "continuations": [p[2] for p in prompts]}


def describe_file(variant) -> str:
    if variant.kind == "gguf":
        return "GGUF " + ("Q4_K, Q5_K, Q6_K" if variant.dtype == "K" else variant.dtype)
    return "safetensors " + variant.dtype.split("_")[0] + (f", {variant.shards} shards" if variant.shards > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "tests/data/models")
    parser.add_argument("--only", nargs="*", help="make these models and only their rows of index.json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    options.out.mkdir(parents=True, exist_ok=True)
    done: dict = {}
    rows = [make(v, options.out, done) for v in families.VARIANTS if not options.only or v.name in options.only]
    if options.only:
        known = {row["name"]: row for row in json.loads((options.out / "index.json").read_text())}
        known |= {row["name"]: row for row in rows}
        rows = [known[v.name] for v in families.VARIANTS if v.name in known]
    if rows:
        text = "[\n" + ",\n".join(json.dumps(row, separators=(", ", ": ")) for row in rows) + "\n]\n"
        (options.out / "index.json").write_text(text)


if __name__ == "__main__":
    main()
