"""Seeded weights for a tiny model, and their rounding to what a file can hold.

The spreads are chosen so that nothing degenerates: attention scores of about 2, router logits of about 2, logits that
span about 10, and every branch as large as the residual stream.
"""
import zlib

import numpy as np
import torch


def initial(name: str, shape, config, rng) -> np.ndarray:
    hidden = config.hidden_size
    x = rng.standard_normal(shape).astype(np.float32)
    tail = name.removesuffix(".weight").removesuffix(".bias").rsplit(".", 1)[-1]
    logits_scaling = getattr(config, "logits_scaling", 1.0)
    if name.endswith(".bias"):
        return 0.3 * x
    if tail == "e_score_correction_bias":
        return 0.15 * x
    if tail in ("q_norm", "k_norm"):
        return 1.4 + 0.3 * x
    if "norm" in tail:
        return 1.0 + 0.2 * x
    if tail == "embed_tokens":
        return x * (2.2 * logits_scaling / hidden**0.5 if config.tie_word_embeddings else 1.0)
    if tail == "lm_head":
        return x * 2.2 * logits_scaling / hidden**0.5
    gain = {"q_proj": 1.7, "k_proj": 1.7, "v_proj": 1.2, "o_proj": 1.6, "gate_proj": 1.6, "up_proj": 1.6, "gate_up_proj": 1.6,
            "q_a_proj": 1.0, "q_b_proj": 1.7, "kv_a_proj_with_mqa": 1.7, "kv_b_proj": 1.5,
            "down_proj": 2.0, "gate": 2.0, "router": 2.0, "shared_expert_gate": 1.5}[tail]
    return x * gain / shape[-1]**0.5


def build(model, seed_name: str) -> dict[str, np.ndarray]:
    """Every parameter and stored buffer of `model` by name, fp32. The seed is the name's CRC, so that adding a model moves no other."""
    rng = np.random.default_rng(zlib.crc32(seed_name.encode()))
    named = dict(model.named_parameters())
    named |= {name: value for name, value in model.state_dict().items() if name not in named and name != "lm_head.weight"}
    return {name: initial(name, tuple(p.shape), model.config, rng) for name, p in named.items()}


def is_vector_like(name: str) -> bool:
    """What checkpoints keep at full precision: norms, biases, routers and the shared expert's gate."""
    stem = name.removesuffix(".weight")
    return "norm" in name or name.endswith(".bias") or stem.endswith((".gate", ".router", ".shared_expert_gate"))


def round_to(values: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(dtype)


def quantize_scaled(values: np.ndarray, kind: str) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """F8_E4M3 or I8 values with scales by block, row or tensor: (stored, scale, dequantised)."""
    rows, cols = values.shape
    block = {"F8_BLOCK": (32, 16), "F8_CHANNEL": (1, cols), "I8_CHANNEL": (1, cols), "F8_TENSOR": (rows, cols)}[kind]
    top = 127.0 if kind.startswith("I8") else 448.0
    down, across = -(-rows // block[0]), -(-cols // block[1])
    scale = np.zeros((down, across), np.float32)
    for i in range(down):
        for j in range(across):
            scale[i, j] = np.abs(values[i * block[0]:(i + 1) * block[0], j * block[1]:(j + 1) * block[1]]).max() / top
    if kind.endswith("CHANNEL"):  # compressed-tensors stores these scales in the model's 16-bit type
        scale = torch.from_numpy(scale).to(torch.bfloat16).float().numpy()
    full = np.repeat(np.repeat(scale, block[0], 0), block[1], 1)[:rows, :cols]
    scaled = torch.from_numpy(values / full)
    stored = scaled.round().clamp(-127, 127).to(torch.int8) if kind.startswith("I8") else \
        scaled.clamp(-448, 448).to(torch.float8_e4m3fn)
    out_scale = torch.from_numpy(scale)
    if kind.endswith("CHANNEL"):
        out_scale = out_scale.to(torch.bfloat16)
    elif kind == "F8_TENSOR":
        out_scale = out_scale.reshape(1)
    return stored, out_scale, stored.float().numpy() * full
