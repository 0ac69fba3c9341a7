"""What transformers computes in fp32: logits at every position and the greedy continuation, with checks that the result
depends on no rounding accident (a near tie in routing or in the next token)."""
import numpy as np
import torch
import transformers

torch.set_num_threads(2)
PROMPT_LENGTHS = (3, 13, 72)
CONTINUATION = 32
TOP1_MARGIN = 1e-2
ROUTER_MARGIN = 2e-4


def new_model(architecture: str, config_keys: dict, vocab: int):
    cls = getattr(transformers, architecture)
    config = cls.config_class(vocab_size=vocab, bos_token_id=0, eos_token_id=1, pad_token_id=None, **config_keys)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    with torch.device("cpu"):
        model = cls(config).float().eval()
    return model


def load(model, weights: dict[str, np.ndarray]) -> None:
    state = {k: torch.from_numpy(np.ascontiguousarray(v, dtype=np.float32)) for k, v in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()


def is_router(module) -> bool:
    return type(module).__name__.lower().endswith("topkrouter")


def gap(values: torch.Tensor, top: int) -> float:
    """Smallest distance between the last chosen and the first rejected of each row."""
    values = values.sort(dim=-1, descending=True).values
    return float((values[:, top - 1] - values[:, top]).min()) if top < values.shape[-1] else float("inf")


class RouterMargin:
    """Smallest gap between the last chosen and the first rejected router logit, over everything that ran. Where groups of
    experts are chosen first or a bias is added, the gaps of what is compared there."""

    def __init__(self, model):
        self.smallest, self.used = float("inf"), set()
        for name, module in model.named_modules():
            if is_router(module):
                module.register_forward_hook(lambda m, a, out, n=name: self.observe(n, m, out))

    def observe(self, name, router, out):
        values = out[0].reshape(-1, out[0].shape[-1]).float()
        biased = hasattr(router, "e_score_correction_bias")
        if biased:
            values = values.sigmoid() + router.e_score_correction_bias
        grouped = biased or getattr(router, "topk_method", "") == "group_limited_greedy"
        if grouped and router.num_group > 1:
            groups = values.view(len(values), router.num_group, -1)
            scores = groups.topk(2, dim=-1)[0].sum(dim=-1) if biased else groups.max(dim=-1).values
            self.smallest = min(self.smallest, gap(scores, router.topk_group))
            chosen = torch.zeros_like(scores).scatter(1, scores.topk(router.topk_group, dim=-1)[1], 1.0).bool()
            values = groups.masked_fill(~chosen.unsqueeze(-1), float("-inf")).reshape(values.shape)
        self.smallest = min(self.smallest, gap(values, router.top_k))
        self.used |= {(name, int(i)) for i in values.topk(router.top_k, dim=-1)[1].flatten()}


def fresh_rope(model):
    """Dynamic RoPE remembers the longest sequence it saw; each prompt starts anew."""
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(model.config)


@torch.no_grad()
def run(model, prompt: list[int]) -> tuple[np.ndarray, list[int], float]:
    """Logits [positions, vocab], greedy continuation, and the smallest gap between best and second-best token in it."""
    fresh_rope(model)
    out = model(torch.tensor([prompt]), use_cache=True)
    logits, cache = out.logits[0].numpy(), out.past_key_values
    tokens, margin, last = [], float("inf"), out.logits[0, -1]
    for _ in range(CONTINUATION):
        best = torch.topk(last, 2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        tokens.append(int(best.indices[0]))
        out = model(torch.tensor([[tokens[-1]]]), past_key_values=cache, use_cache=True)
        last, cache = out.logits[0, -1], out.past_key_values
    return logits, tokens, margin


@torch.no_grad()
def prompt_logits(model, prompt: list[int]) -> np.ndarray:
    fresh_rope(model)
    return model(torch.tensor([prompt])).logits[0].numpy()


def choose_prompts(model, vocab: int, seed: int, margins: RouterMargin):
    """One prompt of each length whose continuation has no near tie. Returns [(ids, logits, continuation)]."""
    chosen = []
    for length in PROMPT_LENGTHS:
        for attempt in range(200):
            rng = np.random.default_rng([seed, length, attempt])
            prompt = [int(t) for t in rng.integers(3, vocab, length)]
            margins.smallest = float("inf")
            logits, continuation, margin = run(model, prompt)
            if margin > TOP1_MARGIN and margins.smallest > ROUTER_MARGIN:
                chosen.append((prompt, logits, continuation))
                break
        else:
            raise RuntimeError("no prompt without near ties")
    return chosen
