"""Writes a model as a Hugging Face folder, in the spelling of transformers 4 or 5."""
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from . import tokenizers, weights

STORAGE = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def file_tensors(variant, values: dict[str, np.ndarray]) -> tuple[dict[str, torch.Tensor], dict[str, np.ndarray]]:
    """(tensors as the file names and stores them, the model's weights as they are after rounding)."""
    scaled = variant.dtype not in STORAGE
    plain = STORAGE.get(variant.dtype, torch.bfloat16)
    stored, exact = {}, {}
    for name, value in values.items():
        if name == "lm_head.weight" and "model.embed_tokens.weight" in values and value is values["model.embed_tokens.weight"]:
            continue
        quantised = scaled and value.ndim >= 2 and not weights.is_vector_like(name) and \
            not name.startswith(("model.embed_tokens", "lm_head"))
        if not quantised:
            tensor = weights.round_to(value, plain)
            exact[name] = tensor.float().numpy()
            stored |= split_experts(variant, name, tensor)
        elif value.ndim == 2:
            stored[name], stored[name + scale_suffix(variant)], exact[name] = weights.quantize_scaled(value, variant.dtype)
        else:
            exact[name] = np.empty_like(value)
            for part, rows in expert_parts(variant, name, value.shape):
                for e in range(value.shape[0]):
                    q, scale, back = weights.quantize_scaled(value[e, rows], variant.dtype)
                    key = part.format(e=e)
                    stored[key], stored[key + scale_suffix(variant)] = q, scale
                    exact[name][e, rows] = back
    if variant.draft:
        stored |= {name: weights.round_to(value, plain) for name, value in draft_tensors(values).items()}
    return stored, exact


def draft_tensors(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors of a layer past the last, as models that predict several tokens have one; nobody reads their values."""
    layer = 1 + max(int(name.split(".")[2]) for name in values if name.startswith("model.layers."))
    hidden = len(values["model.norm.weight"])
    stem = f"model.layers.{layer}."
    return {stem + "eh_proj.weight": np.full((hidden, 2 * hidden), 0.5, np.float32), stem + "enorm.weight": np.ones(hidden, np.float32),
            stem + "hnorm.weight": np.ones(hidden, np.float32), stem + "shared_head.norm.weight": np.ones(hidden, np.float32),
            stem + "mlp.gate.e_score_correction_bias": np.ones(4, np.float32)}


def scale_suffix(variant) -> str:
    return "_scale_inv" if variant.dtype == "F8_BLOCK" else "_scale"


def expert_parts(variant, name: str, shape) -> list[tuple[str, slice]]:
    """Names of single experts' tensors that a fused tensor splits into, with their rows in it."""
    mixtral = variant.architecture == "MixtralForCausalLM"
    stem = name.rsplit(".", 1)[0].replace(".mlp.", ".block_sparse_moe." if mixtral else ".mlp.")
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    if name.endswith("gate_up_proj"):
        half = shape[1] // 2
        return [(f"{stem}.{{e}}.{gate}.weight", slice(0, half)), (f"{stem}.{{e}}.{up}.weight", slice(half, None))]
    return [(f"{stem}.{{e}}.{down}.weight", slice(0, None))]


def split_experts(variant, name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    granite = variant.architecture == "GraniteMoeForCausalLM"
    if granite and variant.spelling == 4:
        for new, old in (("experts.gate_up_proj", "input_linear.weight"), ("experts.down_proj", "output_linear.weight"),
                         ("router.weight", "router.layer.weight")):
            name = name.replace("block_sparse_moe." + new, "block_sparse_moe." + old)
    if variant.experts == "fused" or granite:
        return {name: tensor}
    if ".experts." in name:
        return {part.format(e=e): tensor[e, rows].contiguous() for part, rows in expert_parts(variant, name, tensor.shape)
                for e in range(tensor.shape[0])}
    if variant.architecture == "MixtralForCausalLM":
        name = name.replace(".mlp.gate.", ".block_sparse_moe.gate.")
    return {name: tensor}


def config_json(variant, config) -> dict:
    keys = config.to_dict()
    keys["architectures"] = [variant.architecture]
    dtype = {"F32": "float32", "F16": "float16"}.get(variant.dtype, "bfloat16")
    for unwanted in ("_name_or_path", "dtype", "torch_dtype", "output_attentions", "output_hidden_states", "return_dict",
                     "chunk_size_feed_forward", "id2label", "label2id", "problem_type", "is_encoder_decoder", "for_llm_class"):
        keys.pop(unwanted, None)
    if variant.dtype == "F8_BLOCK":
        keys["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                       "weight_block_size": [32, 16], "modules_to_not_convert": ["lm_head"]}
    elif variant.dtype not in STORAGE:
        keys["quantization_config"] = compressed_tensors(variant)
    if variant.spelling == 5:
        keys["dtype"] = dtype
        keys["transformers_version"] = "5.24.0"
    else:
        old_spelling(variant, keys, dtype)
    return keys


def compressed_tensors(variant) -> dict:
    strategy = "tensor" if variant.dtype == "F8_TENSOR" else "channel"
    return {"quant_method": "compressed-tensors", "quantization_status": "compressed", "ignore": ["lm_head"],
            "format": "int-quantized" if variant.dtype.startswith("I8") else "float-quantized",
            "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": None, "weights": {
                "num_bits": 8, "type": "int" if variant.dtype.startswith("I8") else "float", "strategy": strategy,
                "symmetric": True, "dynamic": False}}}}


def old_spelling(variant, keys: dict, dtype: str) -> None:
    """transformers 4: rope_theta and rope_scaling apart, torch_dtype, num_experts for Qwen3, no layer_types."""
    rope = dict(keys.pop("rope_parameters"))
    keys["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    if "partial_rotary_factor" in rope:
        keys["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if kind == "default":
        keys["rope_scaling"] = None
    elif kind == "linear" or variant.architecture.startswith("Deepseek"):
        keys["rope_scaling"] = {"type": kind, **rope}
    else:
        keys["rope_scaling"] = {"rope_type": kind, **rope}
    keys["torch_dtype"] = dtype
    keys["transformers_version"] = "4.46.3"
    keys.pop("layer_types", None)
    if variant.architecture == "Qwen3MoeForCausalLM":
        keys["num_experts"] = keys.pop("num_local_experts")
    if variant.architecture.startswith("Deepseek"):
        keys.pop("head_dim"), keys.pop("qk_head_dim"), keys.pop("rope_interleave", None)
        third = variant.architecture == "DeepseekV3ForCausalLM"
        keys |= {"moe_layer_freq": 1, "scoring_func": "sigmoid" if third else "softmax"}
        if third:
            keys["topk_method"] = "noaux_tc"


def write(variant, config, tensors: dict[str, torch.Tensor], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save_json(folder / "config.json", config_json(variant, config))
    save_json(folder / "tokenizer.json", tokenizers.tokenizer_json(config.vocab_size))
    save_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin|>",
                                                 "eos_token": "<|end|>", "model_max_length": config.max_position_embeddings})
    save_json(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": [1], "do_sample": False})
    if variant.shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(tensors)
    weight_map = {}
    for s in range(variant.shards):
        file = f"model-{s + 1:05}-of-{variant.shards:05}.safetensors"
        part = names[s::variant.shards]
        save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
        weight_map |= {n: file for n in part}
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    save_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total},
                                                        "weight_map": dict(sorted(weight_map.items()))})


def save_json(path: Path, value) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":") if "tokenizer.json" in path.name else None,
                               indent=None if "tokenizer.json" in path.name else 1) + "\n")
