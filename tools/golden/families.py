"""The models that the conformance suite checks: one row per model, data only.

Every model is tiny and seeded. `config` holds the keys of the transformers configuration class; `without` lists changes
that must alter the logits, so that a feature which the engine ignores cannot pass unnoticed.
"""
from dataclasses import dataclass, field


@dataclass
class Variant:
    name: str                  # folder or file stem under tests/data/models
    architecture: str          # transformers class
    features: str              # for the table in docs/conformance.md
    config: dict               # keyword arguments of the configuration class
    kind: str = "folder"       # "folder" or "gguf"
    spelling: int = 5          # config.json as transformers 4 or 5 writes it
    experts: str = "apart"     # expert tensors "apart" or "fused", in files of a folder
    dtype: str = "BF16"        # storage: F32 F16 BF16 F8_BLOCK F8_CHANNEL F8_TENSOR I8_CHANNEL; of a gguf: by tensor, see gguf_file
    shards: int = 1
    seed_of: str = ""          # another variant whose weights and reference this one shares
    draft: bool = False        # with a layer past the last, for predicting further ahead, that must be left alone
    split_kv: bool = False     # GGUF of latent attention: the up-projection of keys and values in two tensors
    vocab: int = 144           # 144: printable ASCII; 272: every byte
    without: list = field(default_factory=list)


SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, rms_norm_eps=1e-5, tie_word_embeddings=False)
SPARSE = dict(SMALL, num_experts_per_tok=2)
BLOCKS = dict(SMALL, hidden_size=64)  # rows in whole blocks of 32 values


def rope(kind, **keys):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=10000.0, **keys))


NO_SCALING = rope("default")
LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=32)
LINEAR = rope("linear", factor=4.0)

MIXTRAL = dict(SPARSE, intermediate_size=32, num_local_experts=6, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
OLMOE = dict(SPARSE, num_key_value_heads=4, intermediate_size=24, num_experts=7, num_experts_per_tok=3, norm_topk_prob=False)
QWEN2MOE = dict(SPARSE, intermediate_size=64, moe_intermediate_size=24, shared_expert_intermediate_size=40, num_experts=6,
                norm_topk_prob=False)
QWEN3MOE = dict(SPARSE, head_dim=16, intermediate_size=64, moe_intermediate_size=24, num_local_experts=8,
                num_experts_per_tok=3, norm_topk_prob=True)
GRANITE = dict(SPARSE, intermediate_size=32, num_local_experts=6, tie_word_embeddings=True, embedding_multiplier=6.0,
               residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=4.0)
LLAMA = dict(SMALL, intermediate_size=72)
GLM4 = dict(SPARSE, num_hidden_layers=3, head_dim=16, intermediate_size=64, moe_intermediate_size=24, n_routed_experts=8,
            num_experts_per_tok=3, n_shared_experts=1, n_group=4, topk_group=2, routed_scaling_factor=1.8, first_k_dense_replace=1,
            norm_topk_prob=True, attention_bias=True, use_qk_norm=True)
LATENT = dict(SMALL, num_hidden_layers=3, num_key_value_heads=4, kv_lora_rank=24, q_lora_rank=20, qk_rope_head_dim=8,
              qk_nope_head_dim=12, v_head_dim=10, intermediate_size=64, moe_intermediate_size=24, n_routed_experts=8,
              num_experts_per_tok=3, n_shared_experts=2, first_k_dense_replace=1)
LATENT_YARN = rope("yarn", factor=8.0, original_max_position_embeddings=32, beta_fast=32, beta_slow=1, mscale=0.9, mscale_all_dim=0.9)
DEEPSEEK2 = dict(LATENT, topk_method="group_limited_greedy", n_group=4, topk_group=2, routed_scaling_factor=3.0)
DEEPSEEK3 = dict(LATENT, n_shared_experts=1, n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True)

FOLDERS = [
    Variant("mixtral", "MixtralForCausalLM", "GQA; experts fused; all bytes in the vocabulary", MIXTRAL, experts="fused",
            vocab=272),
    Variant("mixtral-v4", "MixtralForCausalLM", "the same model in transformers 4 spelling; experts apart", MIXTRAL,
            spelling=4, seed_of="mixtral", vocab=272),
    Variant("mixtral-window", "MixtralForCausalLM", "sliding window 20", dict(MIXTRAL, sliding_window=20), dtype="F16",
            without=[dict(sliding_window=None)]),
    Variant("olmoe", "OlmoeForCausalLM", "full QK-norm; top-k not normalised", OLMOE, without=[dict(norm_topk_prob=True)]),
    Variant("olmoe-clip-v4", "OlmoeForCausalLM", "GQA; clip_qkv; attention biases; top-k normalised; transformers 4 spelling",
            dict(OLMOE, num_key_value_heads=2, clip_qkv=0.9, attention_bias=True, norm_topk_prob=True), spelling=4,
            without=[dict(clip_qkv=None), dict(norm_topk_prob=False)]),
    Variant("qwen2moe", "Qwen2MoeForCausalLM", "shared expert with gate; QKV biases; top-k not normalised", QWEN2MOE,
            experts="fused", without=[dict(norm_topk_prob=True)]),
    Variant("qwen2moe-mixed-v4", "Qwen2MoeForCausalLM",
            "mlp_only_layers, decoder_sparse_step 2; alternating window 20; top-k normalised; transformers 4 spelling",
            dict(QWEN2MOE, num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[3], use_sliding_window=True,
                 sliding_window=20, max_window_layers=3, norm_topk_prob=True), spelling=4,
            without=[dict(use_sliding_window=False), dict(norm_topk_prob=False), dict(max_window_layers=1)]),
    Variant("qwen3moe", "Qwen3MoeForCausalLM", "QK-norm by head; head_dim apart from hidden / heads; 3 shards", QWEN3MOE,
            shards=3, without=[dict(norm_topk_prob=False)]),
    Variant("qwen3moe-v4", "Qwen3MoeForCausalLM", "the same model in transformers 4 spelling", QWEN3MOE, spelling=4,
            seed_of="qwen3moe"),
    Variant("qwen3moe-mixed", "Qwen3MoeForCausalLM",
            "mlp_only_layers, decoder_sparse_step 2; attention biases; window 20; top-k not normalised; experts fused",
            dict(QWEN3MOE, num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[1], attention_bias=True,
                 use_sliding_window=True, sliding_window=20, norm_topk_prob=False), experts="fused",
            without=[dict(use_sliding_window=False), dict(norm_topk_prob=True)]),
    Variant("granitemoe", "GraniteMoeForCausalLM", "four multipliers; tied embeddings; experts fused", GRANITE, experts="fused",
            without=[dict(embedding_multiplier=1.0), dict(residual_multiplier=1.0), dict(attention_multiplier=0.29),
                     dict(logits_scaling=1.0)]),
    Variant("granitemoe-v4", "GraniteMoeForCausalLM", "the same model in transformers 4 spelling (input_linear)", GRANITE,
            spelling=4, seed_of="granitemoe"),
    Variant("llama", "LlamaForCausalLM", "GQA; tied embeddings; all bytes in the vocabulary", dict(LLAMA, tie_word_embeddings=True),
            vocab=272),
    Variant("llama-bias-f32", "LlamaForCausalLM", "attention biases, that of the output too",
            dict(LLAMA, num_hidden_layers=1, attention_bias=True), dtype="F32"),
    Variant("llama-linear-v4", "LlamaForCausalLM", "RoPE linear, transformers 4 spelling with `type`", dict(LLAMA, **LINEAR),
            spelling=4, without=[NO_SCALING]),
    Variant("llama-dynamic", "LlamaForCausalLM", "RoPE dynamic NTK, prompts past the context",
            dict(LLAMA, max_position_embeddings=32, **rope("dynamic", factor=4.0)), without=[NO_SCALING]),
    Variant("llama-llama3", "LlamaForCausalLM", "RoPE llama3", dict(LLAMA, **LLAMA3), without=[NO_SCALING]),
    Variant("llama-llama3-v4", "LlamaForCausalLM", "the same model in transformers 4 spelling", dict(LLAMA, **LLAMA3),
            spelling=4, seed_of="llama-llama3"),
    Variant("llama-yarn", "LlamaForCausalLM", "RoPE YaRN", dict(LLAMA, **YARN), without=[NO_SCALING, LINEAR]),
    Variant("qwen2-yarn-v4", "Qwen2ForCausalLM", "YaRN with attention_factor and betas; transformers 4 spelling",
            dict(LLAMA, **rope("yarn", factor=4.0, original_max_position_embeddings=64, attention_factor=0.9, beta_fast=16.0,
                               beta_slow=2.0)), spelling=4, without=[NO_SCALING, YARN]),
    Variant("qwen3-yarn", "Qwen3ForCausalLM", "YaRN with mscale and without truncation; QK-norm by head",
            dict(LLAMA, head_dim=16, **rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=1.2,
                                            mscale_all_dim=0.7, truncate=False)), without=[NO_SCALING, YARN]),
    Variant("qwen2", "Qwen2ForCausalLM", "QKV biases; tied embeddings; window 20 from layer 1 on",
            dict(LLAMA, tie_word_embeddings=True, num_hidden_layers=3, use_sliding_window=True, sliding_window=20,
                 max_window_layers=1), without=[dict(use_sliding_window=False), dict(max_window_layers=0)]),
    Variant("qwen3", "Qwen3ForCausalLM", "QK-norm by head; head_dim apart; attention biases",
            dict(LLAMA, head_dim=16, attention_bias=True)),
    Variant("mistral", "MistralForCausalLM", "sliding window 20; head_dim apart", dict(LLAMA, head_dim=16, sliding_window=20),
            without=[dict(sliding_window=None)]),
    Variant("mistral-odd", "MistralForCausalLM", "widths that fill no vector: hidden 44, head_dim 6, FFN 70",
            dict(LLAMA, hidden_size=44, head_dim=6, num_attention_heads=6, intermediate_size=70, sliding_window=None), dtype="F16"),
    Variant("glm4moe", "Glm4MoeForCausalLM",
            "half of each head rotated; QKV biases; QK-norm by head; sigmoid routing with bias and groups; shared expert; first layer "
            "dense; experts fused", GLM4, experts="fused",
            without=[dict(routed_scaling_factor=1.0), dict(n_group=1, topk_group=1), dict(norm_topk_prob=False),
                     dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=1.0))]),
    Variant("glm4moe-v4", "Glm4MoeForCausalLM", "the same model in transformers 4 spelling; experts apart; a layer for drafts", GLM4,
            spelling=4, seed_of="glm4moe", draft=True),
    Variant("glm4moe-plain", "Glm4MoeForCausalLM", "no groups; no QK-norm; two shared experts; gates not normalised; a quarter rotated",
            dict(GLM4, num_hidden_layers=2, head_dim=24, n_group=1, topk_group=1, use_qk_norm=False, attention_bias=False,
                 n_shared_experts=2, first_k_dense_replace=0, norm_topk_prob=False,
                 rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25)),
            without=[dict(norm_topk_prob=True)]),
    Variant("deepseek2", "DeepseekV2ForCausalLM",
            "latent attention with query rank; YaRN with mscale_all_dim; group-limited routing; shared experts; first layer dense; "
            "experts fused", dict(DEEPSEEK2, **LATENT_YARN), experts="fused",
            without=[dict(topk_method="greedy"), dict(routed_scaling_factor=1.0), NO_SCALING,
                     rope("yarn", factor=8.0, original_max_position_embeddings=32)]),
    Variant("deepseek2-lite-v4", "DeepseekV2ForCausalLM", "no query rank; greedy routing; transformers 4 spelling",
            dict(LATENT, q_lora_rank=None, topk_method="greedy", **LATENT_YARN), spelling=4, without=[NO_SCALING]),
    Variant("deepseek2-odd", "DeepseekV2ForCausalLM", "widths that fill no vector: ranks 21 and 19, heads of 7 + 6 and 5; attention biases",
            dict(LATENT, hidden_size=45, num_attention_heads=3, num_key_value_heads=3, kv_lora_rank=21, q_lora_rank=19,
                 qk_rope_head_dim=6, qk_nope_head_dim=7, v_head_dim=5, attention_bias=True, num_hidden_layers=2), dtype="F16"),
    Variant("deepseek3", "DeepseekV3ForCausalLM",
            "latent attention; sigmoid routing with bias and groups; YaRN with mscale_all_dim; shared expert; experts fused",
            dict(DEEPSEEK3, **LATENT_YARN), experts="fused",
            without=[dict(routed_scaling_factor=1.0), dict(n_group=1, topk_group=1), dict(norm_topk_prob=False), NO_SCALING,
                     dict(rope_interleave=False)]),
    Variant("deepseek3-v4", "DeepseekV3ForCausalLM", "the same model in transformers 4 spelling; experts apart; a layer for drafts",
            dict(DEEPSEEK3, **LATENT_YARN), spelling=4, seed_of="deepseek3", draft=True),
    Variant("deepseek3-halves", "DeepseekV3ForCausalLM", "rotary pairs as halves; no query rank; YaRN with mscale other than mscale_all_dim",
            dict(DEEPSEEK3, num_hidden_layers=2, q_lora_rank=None, rope_interleave=False,
                 **rope("yarn", factor=8.0, original_max_position_embeddings=32, mscale=1.2, mscale_all_dim=0.6)),
            without=[dict(rope_interleave=True), LATENT_YARN]),
    Variant("deepseek3-f8-block", "DeepseekV3ForCausalLM", "F8_E4M3, weight_scale_inv by blocks of 32 x 16, latent attention's too",
            dict(DEEPSEEK3, num_hidden_layers=2), dtype="F8_BLOCK"),
    Variant("llama-f8-block", "LlamaForCausalLM", "F8_E4M3, weight_scale_inv by blocks of 32 x 16", LLAMA, dtype="F8_BLOCK"),
    Variant("qwen3moe-f8-channel", "Qwen3MoeForCausalLM", "F8_E4M3, weight_scale by row", QWEN3MOE, dtype="F8_CHANNEL"),
    Variant("mixtral-f8-tensor", "MixtralForCausalLM", "F8_E4M3, one weight_scale by tensor", MIXTRAL, dtype="F8_TENSOR"),
    Variant("qwen2-i8", "Qwen2ForCausalLM", "I8, weight_scale by row", LLAMA, dtype="I8_CHANNEL"),
]

GGUF_LLAMA = dict(BLOCKS, intermediate_size=96)
GGUF_MIXTRAL = dict(BLOCKS, num_experts_per_tok=2, intermediate_size=32, num_local_experts=6)
GGUF_OLMOE = dict(OLMOE, hidden_size=64, num_experts=6, intermediate_size=32)
GGUF_QWEN2MOE = dict(QWEN2MOE, hidden_size=64, num_experts=4, moe_intermediate_size=32, shared_expert_intermediate_size=64)
GGUF_QWEN3MOE = dict(QWEN3MOE, hidden_size=64, num_local_experts=6, num_experts_per_tok=2, moe_intermediate_size=32)
GGUF_GLM4 = dict(GLM4, hidden_size=64, n_routed_experts=4, n_group=2, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=32,
                 num_hidden_layers=2)
GGUF_LATENT = dict(hidden_size=64, kv_lora_rank=32, q_lora_rank=32, qk_nope_head_dim=32, v_head_dim=32, n_routed_experts=6, n_group=3,
                   topk_group=2, num_experts_per_tok=2, moe_intermediate_size=32, num_hidden_layers=2)

GGUF = [
    Variant("llama-f16.gguf", "LlamaForCausalLM", "tied embeddings; Q and K permuted; all bytes in the vocabulary",
            dict(GGUF_LLAMA, tie_word_embeddings=True), "gguf", dtype="F16", vocab=272),
    Variant("llama-q4_1.gguf", "LlamaForCausalLM", "RoPE llama3 by rope_freqs", dict(GGUF_LLAMA, **LLAMA3), "gguf",
            dtype="Q4_1", without=[NO_SCALING]),
    Variant("llama-yarn-q5_0.gguf", "LlamaForCausalLM", "RoPE YaRN by metadata", dict(GGUF_LLAMA, **YARN), "gguf", dtype="Q5_0",
            without=[NO_SCALING, LINEAR]),
    Variant("mistral-linear-q4_0.gguf", "MistralForCausalLM", "RoPE linear by metadata; head_dim apart",
            dict(GGUF_LLAMA, head_dim=32, sliding_window=None, **LINEAR), "gguf", dtype="Q4_0", without=[NO_SCALING]),
    Variant("mixtral-q8_0.gguf", "MixtralForCausalLM", "experts in one tensor", GGUF_MIXTRAL, "gguf", dtype="Q8_0"),
    Variant("mixtral-k.gguf", "MixtralForCausalLM", "Q4_K, Q5_K and Q6_K",
            dict(GGUF_MIXTRAL, hidden_size=256, num_hidden_layers=1, num_attention_heads=8, num_key_value_heads=2,
                 intermediate_size=256, num_local_experts=2, num_experts_per_tok=1), "gguf", dtype="K"),
    Variant("qwen2-bf16.gguf", "Qwen2ForCausalLM", "QKV biases; tied embeddings", dict(GGUF_LLAMA, tie_word_embeddings=True),
            "gguf", dtype="BF16"),
    Variant("qwen2moe-q5_1.gguf", "Qwen2MoeForCausalLM", "shared expert with gate", GGUF_QWEN2MOE, "gguf", dtype="Q5_1"),
    Variant("qwen3-q4_1.gguf", "Qwen3ForCausalLM", "QK-norm by head", dict(GGUF_LLAMA, head_dim=32), "gguf", dtype="Q4_1"),
    Variant("qwen3moe-q4_0.gguf", "Qwen3MoeForCausalLM", "QK-norm by head; top-k normalised", GGUF_QWEN3MOE, "gguf", dtype="Q4_0"),
    Variant("olmoe-f32.gguf", "OlmoeForCausalLM", "full QK-norm", dict(GGUF_OLMOE, num_hidden_layers=1), "gguf", dtype="F32"),
    Variant("glm4moe-q8_0.gguf", "Glm4MoeForCausalLM", "sigmoid routing with bias and groups; QK-norm; biases; a layer for drafts",
            GGUF_GLM4, "gguf", dtype="Q8_0", draft=True),
    Variant("deepseek2-q8_0.gguf", "DeepseekV2ForCausalLM", "latent attention, keys and values in one tensor; YaRN by metadata",
            dict(DEEPSEEK2, **LATENT_YARN) | GGUF_LATENT, "gguf", dtype="Q8_0", without=[NO_SCALING]),
    Variant("deepseek3-q8_0.gguf", "DeepseekV3ForCausalLM", "latent attention, keys and values in two tensors; sigmoid routing with groups",
            dict(DEEPSEEK3, **LATENT_YARN) | GGUF_LATENT, "gguf", dtype="Q8_0", split_kv=True, without=[NO_SCALING]),
]

VARIANTS = FOLDERS + GGUF
