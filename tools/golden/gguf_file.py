"""Writes a model as GGUF with the `gguf` package, laid out as the converters of that ecosystem do it."""
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

from . import tokenizers, weights

ARCHITECTURE = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "MixtralForCausalLM": "llama",
                "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3", "Qwen2MoeForCausalLM": "qwen2moe",
                "Qwen3MoeForCausalLM": "qwen3moe", "OlmoeForCausalLM": "olmoe", "Glm4MoeForCausalLM": "glm4moe",
                "DeepseekV2ForCausalLM": "deepseek2", "DeepseekV3ForCausalLM": "deepseek2"}

NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "mlp.gate": "ffn_gate_inp", "mlp.experts.down_proj": "ffn_down_exps", "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
         "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
         "mlp.shared_expert_gate": "ffn_gate_inp_shexp", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
         "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
         "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
         "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.kv_b_proj": "attn_kv_b"}


def tensor_names(arch: str, name: str, value: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The GGUF tensors that hold the transformers tensor `name`."""
    top = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
           "lm_head.weight": "output.weight"}
    if name in top:
        return [(top[name], value)]
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    if rest == "mlp.experts.gate_up_proj":
        half = value.shape[1] // 2
        return [(f"blk.{layer}.ffn_gate_exps.weight", value[:, :half]), (f"blk.{layer}.ffn_up_exps.weight", value[:, half:])]
    if rest == "mlp.gate.e_score_correction_bias":
        return [(f"blk.{layer}.exp_probs_b.bias", value)]
    if rest == "post_attention_layernorm.weight" and arch == "glm4moe":
        return [(f"blk.{layer}.post_attention_norm.weight", value)]
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
        if variant.split_kv and name.endswith("kv_b_proj.weight"):
            parts, exact[name] = split_key_value(variant, config, name, value, rng)
            stored += parts
            continue
        back = []
        for gguf_name, part in tensor_names(ARCHITECTURE[variant.architecture], name, value):
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
    if variant.draft:
        layer, hidden = config.num_hidden_layers, config.hidden_size
        stored += [(f"blk.{layer}.nextn.eh_proj.weight", np.full((hidden, 2 * hidden), 0.5, np.float32), Type.F32),
                   (f"blk.{layer}.nextn.enorm.weight", np.ones(hidden, np.float32), Type.F32),
                   (f"blk.{layer}.exp_probs_b.bias", np.ones(4, np.float32), Type.F32)]
    return stored, exact


def split_key_value(variant, config, name: str, value: np.ndarray, rng):
    """The up-projection of latents as keys' part by head, transposed, and values' part by head."""
    layer = name.split(".")[2]
    by_head = value.reshape(config.num_attention_heads, -1, config.kv_lora_rank)
    keys, values = np.split(by_head, [config.qk_nope_head_dim], axis=1)
    stored, back = [], []
    for gguf_name, part in (("attn_k_b", keys.swapaxes(1, 2)), ("attn_v_b", values)):
        data, kind, decoded = encode(variant, name, np.ascontiguousarray(part), rng)
        stored.append((f"blk.{layer}.{gguf_name}.weight", data, kind))
        back.append(decoded)
    return stored, np.concatenate([back[0].swapaxes(1, 2), back[1]], axis=1).reshape(value.shape)


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
    writer.add_block_count(config.num_hidden_layers + variant.draft)
    if variant.draft:
        writer.add_nextn_predict_layers(1)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(1 if variant.split_kv else config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_rope_dimension_count(int(head_dim * config.rope_parameters.get("partial_rotary_factor", 1.0)))
    if arch == "deepseek2":
        add_latent_attention(writer, variant, config)
    elif head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if arch in ("deepseek2", "glm4moe"):
        add_routing(writer, config)
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


def add_latent_attention(writer, variant, config) -> None:
    key, rank = config.qk_nope_head_dim + config.qk_rope_head_dim, config.kv_lora_rank
    writer.add_kv_lora_rank(rank)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_key_length(rank + config.qk_rope_head_dim if variant.split_kv else key)
    writer.add_value_length(rank if variant.split_kv else config.v_head_dim)
    if variant.split_kv:
        writer.add_key_length_mla(key)
        writer.add_value_length_mla(config.v_head_dim)


def add_routing(writer, config) -> None:
    sigmoid = not hasattr(config, "topk_method")
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    if sigmoid:
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if config.n_group:
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


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
        if "mscale_all_dim" in rope:
            writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])


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
