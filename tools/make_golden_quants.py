#!/usr/bin/env python3
"""Writes tests/data/quants/golden.safetensors: blocks of every weight format with the values that other people's code
reads from them (gguf.quants for GGUF's formats, torch for FP8), and values with the blocks that gguf.quants makes of
them.

    pip install gguf safetensors torch numpy
    tools/make_golden_quants.py
"""

from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import quants
from safetensors.numpy import save_file

OUT = Path(__file__).resolve().parent.parent / "tests/data/quants/golden.safetensors"
READ = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
WRITTEN = ["Q4_0", "Q4_1", "Q8_0"]
# Where the half-precision scales of a block lie; random bits there would often be NaN.
SCALES_AT = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
             "Q6_K": [208]}
BLOCKS = 6


def random_blocks(name, random):
    size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in SCALES_AT[name]:
        scales = random.normal(0, 0.1, BLOCKS).astype(np.float16)
        scales[0] = np.float16(3e-7)  # subnormal
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(BLOCKS, 2)
    return blocks


def main():
    random = np.random.default_rng(2026)
    out = {}
    for name in READ:
        blocks = random_blocks(name, random)
        out[f"{name}.blocks"] = blocks
        out[f"{name}.values"] = quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float32)

    codes = np.arange(256, dtype=np.uint8)
    out["F8_E4M3.blocks"] = codes
    out["F8_E4M3.values"] = torch.from_numpy(codes).view(torch.float8_e4m3fn).float().numpy()
    out["I8.blocks"] = codes
    out["I8.values"] = codes.view(np.int8).astype(np.float32)
    halves = np.concatenate([random.integers(0, 65536, 1000), [0, 0x8000, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00]])
    halves = halves.astype(np.uint16)
    out["F16.blocks"] = halves.view(np.uint8)
    out["F16.values"] = halves.view(np.float16).astype(np.float32)
    out["BF16.blocks"] = halves.view(np.uint8)
    out["BF16.values"] = torch.from_numpy(halves.view(np.int16)).view(torch.bfloat16).float().numpy()

    values = random.normal(0, 1, (8, 32)).astype(np.float32)
    values[0] = 0.0
    values[1, 5] = -20.0
    out["written.values"] = values
    for name in WRITTEN:
        out[f"written.{name}"] = quants.quantize(values, gguf.GGMLQuantizationType[name])
    # Rounding to halves: ties, subnormals, overflow.
    edges = np.array([1 + 2**-11, 1 + 3 * 2**-11, 65504, 65519.996, 65520, 1e-8, 2**-25, 3 * 2**-25, 2**-14, -2**-24,
                      6.1e-5, 1e30, -0.0, 0.1], dtype=np.float32)
    edges = np.concatenate([edges, random.normal(0, 1e-4, 200).astype(np.float32)])
    out["rounded.values"] = edges
    with np.errstate(over="ignore"):
        out["rounded.F16"] = edges.astype(np.float16).view(np.uint8)
    out["rounded.BF16"] = torch.from_numpy(edges).bfloat16().view(torch.int16).numpy().view(np.uint8)

    OUT.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in out.items()}, OUT)
    print(f"{OUT}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
