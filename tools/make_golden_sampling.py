#!/usr/bin/env python3
"""Makes tests/data/sampling/distributions.json: what transformers' logits processors leave of seeded logits.

    python3 -m venv venv && venv/bin/pip install torch transformers && venv/bin/python tools/make_golden_sampling.py

Each case holds parameters, logits, a prompt, an answer so far and the probability of each token that may be drawn next. The
processors run in Troupe's order: repetition penalty; presence and frequency penalties (OpenAI's formula, which transformers does
not have); temperature, top-k, typical-p, top-p, min-p.
"""
import json
import pathlib

import torch
from transformers import generation

OFF = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, typical_p=1.0, repetition=1.0, presence=0.0, frequency=0.0)

SMALL = {
    "plain": {},
    "hot": dict(temperature=1.8),
    "cold": dict(temperature=0.6),
    "top_k": dict(top_k=7),
    "top_p": dict(top_p=0.8),
    "min_p": dict(min_p=0.1),
    "typical_p": dict(typical_p=0.7),
    "all_filters": dict(temperature=0.9, top_k=20, top_p=0.95, min_p=0.05, typical_p=0.9),
    "repetition": dict(repetition=1.4),
    "presence": dict(presence=1.1),
    "frequency": dict(frequency=0.6),
    "negative_penalties": dict(presence=-0.8, frequency=-0.4),
    "all_penalties": dict(temperature=1.2, top_p=0.9, repetition=1.2, presence=0.5, frequency=0.3),
}
LARGE = {
    "top_k_1": dict(top_k=1),
    "top_k_beyond": dict(top_k=5000),
    "top_p_tiny": dict(top_p=0.001),
    "top_p_most": dict(top_p=0.999, temperature=1.5),
    "min_p_tiny": dict(min_p=0.0001),
    "min_p_one": dict(min_p=1.0),
    "typical_p_small": dict(typical_p=0.05),
    "typical_p_most": dict(typical_p=0.99),
    "nearly_greedy": dict(temperature=0.05),
    "very_hot": dict(temperature=20.0),
    "k_and_p": dict(top_k=50, top_p=0.9, temperature=0.7),
    "p_and_min_p": dict(top_p=0.95, min_p=0.02),
}


def distribution(logits, prompt, answer, p):
    scores = torch.tensor([logits], dtype=torch.float32)
    ids = torch.tensor([prompt + answer])
    if p["repetition"] != 1.0:
        scores = generation.RepetitionPenaltyLogitsProcessor(p["repetition"])(ids, scores)
    for token in set(answer):
        scores[0, token] -= p["presence"] + p["frequency"] * answer.count(token)
    warpers = []
    if p["temperature"] != 1.0:
        warpers.append(generation.TemperatureLogitsWarper(p["temperature"]))
    if p["top_k"] > 0:
        warpers.append(generation.TopKLogitsWarper(p["top_k"]))
    if p["typical_p"] < 1.0:
        warpers.append(generation.TypicalLogitsWarper(p["typical_p"]))
    if p["top_p"] < 1.0:
        warpers.append(generation.TopPLogitsWarper(p["top_p"]))
    if p["min_p"] > 0.0:
        warpers.append(generation.MinPLogitsWarper(p["min_p"]))
    for warper in warpers:
        scores = warper(ids, scores)
    probabilities = torch.softmax(scores.double(), dim=-1)[0]
    return {str(i): float(f"{x:.9g}") for i, x in enumerate(probabilities.tolist()) if x > 0.0}


def case(name, changes, vocab, seed, spread, draws):
    random = torch.Generator().manual_seed(seed)
    logits = [round(x, 4) for x in (torch.randn(vocab, generator=random) * spread).tolist()]
    prompt, answer = [1, 5, 5, 9], [3, 7, 3, 3, 11]
    params = OFF | changes
    return dict(name=name, draws=draws, params=params, logits=logits, prompt=prompt, answer=answer,
                probabilities=distribution(logits, prompt, answer, params))


def main():
    cases = [case(name, changes, 40, 7, 1.5, True) for name, changes in SMALL.items()]
    cases += [case(name, changes, 1500, 11, 3.0, False) for name, changes in LARGE.items()]
    out = pathlib.Path(__file__).parent.parent / "tests/data/sampling/distributions.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
