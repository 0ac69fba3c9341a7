"""A sequence's tokens depend on that sequence alone: the same request gives the same bytes by itself and among 31
others, at every precision, whatever happens to its neighbours."""

import asyncio
import random

import aiohttp
import pytest

from daemon import TINY_MOE, Daemon

PROBES = [
    {"prompt": "The quick brown fox", "max_tokens": 40, "temperature": 0, "ignore_eos": True},
    {"prompt": "x", "max_tokens": 40, "temperature": 1.2, "seed": 11, "ignore_eos": True},
    {"prompt": "Lorem ipsum " * 8, "max_tokens": 30, "temperature": 0.8, "seed": 5, "top_k": 20, "top_p": 0.9,
     "repetition_penalty": 1.3, "presence_penalty": 0.5, "ignore_eos": True},
]


def others(count, source):
    return [{"prompt": "".join(source.choices("abcdefgh \n", k=source.randint(1, 120))), "max_tokens": source.randint(1, 60),
             "temperature": source.choice([0, 0.7, 1.5]), "seed": source.randint(0, 9), "ignore_eos": True}
            for _ in range(count)]


async def ask_together(daemon, requests, leave=()):
    """The answers' choices; those with an index in `leave` are cut off after a moment."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async def one(index, fields):
            post = session.post(f"{daemon.url}/v1/completions", json={**fields, "logprobs": 2, "stream": index in leave},
                                headers={"Cache-Control": "no-store"})
            async with post as answer:
                assert answer.status == 200
                if index in leave:
                    await answer.content.readline()
                    answer.close()
                    return None
                return (await answer.json())["choices"]

        return await asyncio.gather(*(one(index, fields) for index, fields in enumerate(requests)))


def alone(daemon, fields):
    return daemon.complete(**fields, logprobs=2)["choices"]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8", "int4"])
def test_company_changes_nothing(precision):
    source = random.Random(1)
    with Daemon(TINY_MOE, "--precision", precision) as daemon:
        expected = [alone(daemon, probe) for probe in PROBES]
        for _ in range(3):
            crowd = others(32 - len(PROBES), source)
            places = source.sample(range(32), len(PROBES))
            for place, probe in sorted(zip(places, PROBES), key=lambda pair: pair[0]):
                crowd.insert(place, probe)
            answers = asyncio.run(ask_together(daemon, crowd))
            assert [answers[place] for place in places] == expected
        assert [alone(daemon, probe) for probe in PROBES] == expected


def test_small_steps_and_little_memory_change_nothing():
    """Prefill in chunks of 8 rows and a cache in which not all sequences fit at once."""
    with Daemon(TINY_MOE, "--precision", "fp32") as daemon:
        expected = [alone(daemon, probe) for probe in PROBES]
    tight = ["--max-num-seqs", 8, "--max-num-batched-tokens", 8, "--max-wait", 0, "--queue-timeout", "1min"]
    with Daemon(TINY_MOE, "--precision", "fp32", *tight, "--kv-cache-memory", "512KiB") as daemon:
        crowd = others(13, random.Random(2)) + PROBES
        assert asyncio.run(ask_together(daemon, crowd))[-len(PROBES):] == expected


def test_neighbours_that_leave_change_nothing(moe):
    source = random.Random(3)
    expected = [alone(moe, probe) for probe in PROBES]
    for _ in range(5):
        crowd = others(13, source) + PROBES
        leaving = set(source.sample(range(13), 8))
        assert asyncio.run(ask_together(moe, crowd, leaving))[-len(PROBES):] == expected
