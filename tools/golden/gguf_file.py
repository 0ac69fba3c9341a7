"""Writes a model as GGUF with the `gguf` package, laid out as the converters of that ecosystem do it."""
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

from . import tokenizers, weights

ARCHITECTURE = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "MixtralForCausalLM": "llama",
                "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3", "Qwen2MoeForCausalLM": "qwen2moe",
                "Qwen3MoeForCausalLM": "qwen3moe", "OlmoeForCausalLM": "olmoe"}

NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "mlp.gate": "ffn_gate_inp", "mlp.experts.down_proj": "ffn_down_exps", "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
         "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
         "mlp.shared_expert_gate": "ffn_gate_inp_shexp"}


def tensor_names(name: str, value: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The GGUF tensors that hold the transformers tensor `name`."""
    top = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
           "lm_head.weight": "output.weight"}
    if name in top:
        return [(top[name], value)]
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    if rest == "mlp.experts.gate_up_proj":
        half = value.shape[1] // 2
        return [(f"blk.{layer}.ffn_gate_exps.weight", value[:, :half]), (f"blk.{layer}.ffn_up_exps.weight", value[:, half:])]
    stem, dot, suffix = rest.rpartition(".")
    if rest == "mlp.experts.down_proj":
        stem, suffix = rest, "weight"
    if stem == "mlp.shared_expert_gate":
        value = value.reshape(-1)
    return [(f"blk.{layer}.{NAMES[stem]}.{suffix}", value)]


def permuted_rows(rows: int, heads: int) -> np.ndarray:
    """Row order that turns halves (i, i + dim / 2) into neighbours (2i, 2i + 1), as architecture "llama" stores Q and K."""
    return np.arange(rows).reshape(heads, 2, rows // heads // 2).swapaxes(1, 2).reshape(-1)


def storage_type(variant, name: str, value: np.ndarray) -> Type:
    if value.ndim == 1 or weights.is_vector_like(name):
        return Type.F32
    if variant.dtype == "K":
        kinds = [Type.Q4_K, Type.Q5_K, Type.Q6_K]
        if name.startswith(("model.embed_tokens", "lm_head")):
            return Type.Q6_K
        return kinds[sum(map(ord, name)) % 3]
    if name.startswith("model.embed_tokens") and variant.dtype in ("Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        return Type.Q8_0
    return Type[variant.dtype]


def random_k_blocks(kind: Type, shape, spread: float, rng) -> np.ndarray:
    """Valid random blocks of a K format whose dequantised values have mean 0 and standard deviation `spread`."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    count = int(np.prod(shape)) // block
    raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
    scale_at = slice(size - 2, size) if kind == Type.Q6_K else slice(0, 2)

    def set_scale(d: float) -> None:
        raw[:, scale_at] = np.float16(d).reshape(1).view(np.uint8)
        if kind != Type.Q6_K:  # the minimum's scale centres the values: 4-bit ones average 7.5, 5-bit ones 15.5
            raw[:, 2:4] = np.float16(d * (7.5 if kind == Type.Q4_K else 15.5)).reshape(1).view(np.uint8)

    set_scale(1.0 / 64)
    measured = gguf.quants.dequantize(raw, kind).std() * 64
    set_scale(spread / measured)
    return raw.reshape(*shape[:-1], -1)


def encode(variant, name: str, value: np.ndarray, rng) -> tuple[np.ndarray, Type, np.ndarray]:
    """(bytes or values to store, their type, the exact values that they stand for)."""
    kind = storage_type(variant, name, value)
    if kind in (Type.Q4_K, Type.Q5_K, Type.Q6_K):
        data = random_k_blocks(kind, value.shape, float(value.std()), rng)
        return data, kind, gguf.quants.dequantize(data, kind).reshape(value.shape)
    if kind == Type.F32:
        return value.astype(np.float32), kind, value.astype(np.float32)
    if kind == Type.F16:
        half = value.astype(np.float16)
        return half, kind, half.astype(np.float32)
    data = gguf.quants.quantize(np.ascontiguousarray(value), kind)
    return data, kind, gguf.quants.dequantize(data, kind).reshape(value.shape)


def file_tensors(variant, config, values: dict[str, np.ndarray]):
    """([(name, data, type)], the model's weights as the file represents them, in transformers' layout)."""
    rng = np.random.default_rng(len(variant.name))
    stored, exact = [], {}
    for name, value in values.items():
        back = []
        for gguf_name, part in tensor_names(name, value):
            order = np.arange(part.shape[0])
            if ARCHITECTURE[variant.architecture] == "llama" and ("q_proj" in name or "k_proj" in name):
                heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
                order = permuted_rows(part.shape[0], heads)
            data, kind, decoded = encode(variant, name, np.ascontiguousarray(part[order]), rng)
            stored.append((gguf_name, data, kind))
            plain = np.empty_like(decoded)
            plain[order] = decoded
            back.append(plain)
        exact[name] = np.concatenate(back, axis=1) if len(back) > 1 else back[0].reshape(value.shape)
    return stored, exact


def rope_frequency_factors(config) -> np.ndarray:
    """Llama 3's scaling as a divisor of each inverse frequency."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    plain = 1.0 / config.rope_parameters["rope_theta"] ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    return (plain / scaled.numpy()).astype(np.float32)


def write(variant, config, tensors, path: Path) -> None:
    arch = ARCHITECTURE[variant.architecture]
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(variant.name)
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_rope_dimension_count(head_dim)
    if head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if getattr(config, "moe_intermediate_size", None):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if getattr(config, "shared_expert_intermediate_size", None):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    add_rope(writer, config)
    add_tokenizer(writer, config.vocab_size)
    for name, data, kind in tensors:
        writer.add_tensor(name, data, raw_dtype=None if kind in (Type.F32, Type.F16) else kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_rope(writer, config) -> None:
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope["rope_type"]
    if kind == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_frequency_factors(config))
    elif kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])


def add_tokenizer(writer, size: int) -> None:
    tokens, merges = tokenizers.vocabulary(size)
    special = len(tokenizers.SPECIAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * special + [1] * (size - special))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
