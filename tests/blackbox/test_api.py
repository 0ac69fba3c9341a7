"""Every path and field of the API, on a tiny model."""

import json
import time

import pytest

from daemon import chat, events_of


def test_generate_answers_a_prompt(tiny):
    answer = tiny.post("/generate", {"prompt": "Hi", "max_tokens": 5, "temperature": 0})
    assert answer.status == 200
    body = answer.json()
    assert isinstance(body["text"], str)
    assert body["finish_reason"] in ("stop", "length")
    assert body["usage"]["completion_tokens"] <= 5


def test_generate_gives_at_most_200_tokens_when_nothing_is_said(moe):
    body = moe.post("/generate", {"prompt": "Hi", "ignore_eos": True, "temperature": 0}).json()
    assert body["usage"]["completion_tokens"] == 200
    assert body["finish_reason"] == "length"


def test_generate_streams(tiny):
    fields = {"prompt": "Hi", "max_tokens": 6, "temperature": 0}
    whole = tiny.post("/generate", fields).json()
    events = tiny.stream("/generate", fields)
    assert "".join(event["text"] for event in events) == whole["text"]
    assert events[-1]["finish_reason"] == whole["finish_reason"]


def test_completion_has_openais_fields(tiny):
    before = int(time.time())
    body = tiny.complete(prompt="Hi", max_tokens=4, ignore_eos=True)
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    assert before - 1 <= body["created"] <= time.time() + 1
    assert body["model"] == tiny.get("/v1/models").json()["data"][0]["id"]
    [choice] = body["choices"]
    assert choice["index"] == 0 and choice["finish_reason"] == "length" and choice["logprobs"] is None
    usage = body["usage"]
    assert usage["completion_tokens"] == 4
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_chat_has_openais_fields(tiny):
    body = tiny.post("/v1/chat/completions", chat()).json()
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    [choice] = body["choices"]
    assert choice["message"]["role"] == "assistant"
    assert isinstance(choice["message"]["content"], str)
    assert choice["finish_reason"] in ("stop", "length")


@pytest.mark.parametrize("path,fields", [
    ("/v1/completions", {"prompt": "Hello there", "max_tokens": 24, "temperature": 0}),
    ("/v1/completions", {"prompt": "Hello there", "max_tokens": 24, "temperature": 1, "seed": 3}),
    ("/v1/completions", {"prompt": "Hi", "max_tokens": 9, "temperature": 1, "seed": 5, "n": 3}),
    ("/v1/completions", {"prompt": ["a", "bc"], "max_tokens": 9, "temperature": 0}),
    ("/v1/completions", {"prompt": "Hi", "max_tokens": 4, "temperature": 0, "echo": True}),
])
def test_a_streamed_completion_equals_the_whole_one(tiny, path, fields):
    whole = tiny.post(path, fields).json()
    texts = ["" for _ in whole["choices"]]
    reasons = [[] for _ in whole["choices"]]
    for event in tiny.stream(path, fields):
        for choice in event["choices"]:
            texts[choice["index"]] += choice["text"]
            if choice["finish_reason"]:
                reasons[choice["index"]].append(choice["finish_reason"])
    assert texts == [choice["text"] for choice in whole["choices"]]
    assert reasons == [[choice["finish_reason"]] for choice in whole["choices"]]


@pytest.mark.parametrize("extra", [{}, {"temperature": 1, "seed": 1, "n": 3}])
def test_a_streamed_chat_equals_the_whole_one(tiny, extra):
    fields = chat("Hello there", max_tokens=20, **extra) if not extra else {**chat("Hello there", max_tokens=20), **extra}
    whole = tiny.post("/v1/chat/completions", fields).json()
    count = len(whole["choices"])
    roles, texts, reasons = [0] * count, [""] * count, [[] for _ in range(count)]
    for event in tiny.stream("/v1/chat/completions", fields):
        assert event["object"] == "chat.completion.chunk"
        for choice in event["choices"]:
            roles[choice["index"]] += choice["delta"].get("role") == "assistant"
            texts[choice["index"]] += choice["delta"].get("content") or ""
            if choice["finish_reason"]:
                reasons[choice["index"]].append(choice["finish_reason"])
    assert roles == [1] * count
    assert texts == [choice["message"]["content"] for choice in whole["choices"]]
    assert reasons == [[choice["finish_reason"]] for choice in whole["choices"]]


def test_usage_is_streamed_when_asked_for(tiny):
    fields = {"prompt": "Hi", "max_tokens": 4, "temperature": 0}
    assert all("usage" not in event or event["usage"] is None for event in tiny.stream("/v1/completions", fields))
    events = tiny.stream("/v1/completions", {**fields, "stream_options": {"include_usage": True}})
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == tiny.complete(**fields)["usage"] | {
        "prompt_tokens_details": events[-1]["usage"].get("prompt_tokens_details")}


def test_prompts_may_be_ids_and_lists(tiny):
    ids = tiny.post("/tokenize", {"prompt": "Hi"}).json()["tokens"]
    by_text = tiny.text(prompt="Hi", max_tokens=8)
    assert tiny.text(prompt=ids, max_tokens=8) == by_text
    both = tiny.complete(prompt=[ids, ids], max_tokens=8)["choices"]
    assert [choice["index"] for choice in both] == [0, 1]
    assert [choice["text"] for choice in both] == [by_text, by_text]


def test_token_ids_come_back_when_asked_for(tiny):
    body = tiny.complete(max_tokens=5, ignore_eos=True, return_token_ids=True)
    [choice] = body["choices"]
    assert choice["prompt_token_ids"] == tiny.post("/tokenize", {"prompt": "Hi"}).json()["tokens"]
    assert len(choice["token_ids"]) == 5
    streamed = tiny.stream("/v1/completions", {"prompt": "Hi", "max_tokens": 5, "ignore_eos": True, "temperature": 0,
                                               "return_token_ids": True})
    assert sum((c.get("token_ids", []) for e in streamed for c in e["choices"]), []) == choice["token_ids"]


def test_logprobs_are_sound(tiny):
    body = tiny.complete(max_tokens=4, ignore_eos=True, logprobs=3)
    logprobs = body["choices"][0]["logprobs"]
    assert len(logprobs["tokens"]) == len(logprobs["token_logprobs"]) == len(logprobs["top_logprobs"]) == 4
    for chosen, top in zip(logprobs["token_logprobs"], logprobs["top_logprobs"]):
        assert chosen <= 0
        assert max(top.values()) == pytest.approx(chosen, abs=1e-5)  # greedy takes the likeliest
    chosen = tiny.post("/v1/chat/completions", chat(logprobs=True, top_logprobs=2, max_tokens=3)).json()
    for entry in chosen["choices"][0]["logprobs"]["content"]:
        assert len(entry["top_logprobs"]) == 2
        assert entry["top_logprobs"][0]["logprob"] >= entry["top_logprobs"][1]["logprob"]


def test_echo_scores_the_prompt(tiny):
    [choice] = tiny.complete(prompt="Hello", max_tokens=0, echo=True, logprobs=1)["choices"]
    assert choice["text"] == "Hello"
    logprobs = choice["logprobs"]["token_logprobs"]
    assert logprobs[0] is None
    assert len(logprobs) == len(tiny.post("/tokenize", {"prompt": "Hello"}).json()["tokens"])
    assert all(value <= 0 for value in logprobs[1:])
    assert choice["finish_reason"] == "length"
    # A token scored in the prompt has the probability that it has when it is generated.
    [generated] = tiny.complete(prompt="Hello", max_tokens=1, ignore_eos=True, logprobs=0, return_token_ids=True)["choices"]
    prompt = generated["prompt_token_ids"] + generated["token_ids"]
    [scored] = tiny.complete(prompt=prompt, max_tokens=0, echo=True, logprobs=0)["choices"]
    assert scored["logprobs"]["token_logprobs"][-1] == pytest.approx(generated["logprobs"]["token_logprobs"][0], abs=1e-3)


def test_a_seed_fixes_the_answer_and_no_seed_does_not(tiny):
    fields = {"max_tokens": 24, "temperature": 1.5, "ignore_eos": True}
    first = tiny.text(seed=7, **fields)
    assert tiny.text(seed=7, **fields) == first
    assert len({tiny.text(seed=seed, **fields) for seed in range(4)}) == 4
    assert tiny.text(**fields) != tiny.text(**fields)


def test_choices_of_one_seed_differ(tiny):
    choices = tiny.complete(n=4, seed=1, temperature=1.5, max_tokens=24, ignore_eos=True)["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert len({choice["text"] for choice in choices}) == 4


def test_stop_strings_end_the_text_and_are_never_sent(tiny):
    text = tiny.text(max_tokens=60, ignore_eos=True)
    assert len(text) > 20
    stop = text[8:15]
    expected = text[:text.index(stop)]
    for stops in (stop, [stop], [stop + "never", stop, stop + text[15:18]]):
        fields = {"prompt": "Hi", "max_tokens": 60, "temperature": 0, "ignore_eos": True, "stop": stops}
        [choice] = tiny.complete(**fields)["choices"]
        assert choice["text"] == expected
        assert choice["finish_reason"] == "stop"
        assert choice["stop_reason"] == stop
        events = tiny.stream("/v1/completions", fields, {"Cache-Control": "no-store"})
        assert "".join(c["text"] for e in events for c in e["choices"]) == expected


def test_stop_token_ids_and_min_tokens(tiny):
    ids = tiny.complete(max_tokens=8, ignore_eos=True, return_token_ids=True)["choices"][0]["token_ids"]
    [choice] = tiny.complete(max_tokens=8, ignore_eos=True, stop_token_ids=[ids[3]], return_token_ids=True)["choices"]
    assert choice["finish_reason"] == "stop" and choice["stop_reason"] == ids[3]
    assert len(choice["token_ids"]) <= 4
    [later] = tiny.complete(max_tokens=8, stop_token_ids=[ids[3]], min_tokens=8, return_token_ids=True)["choices"]
    assert len(later["token_ids"]) == 8


def test_logit_bias_forces_and_bans(tiny):
    [choice] = tiny.complete(max_tokens=4, logit_bias={"65": 100}, return_token_ids=True)["choices"]
    assert choice["token_ids"] == [65] * 4
    first = tiny.complete(max_tokens=1, ignore_eos=True, return_token_ids=True)["choices"][0]["token_ids"][0]
    [banned] = tiny.complete(max_tokens=1, logit_bias={str(first): -100}, return_token_ids=True)["choices"]
    assert banned["token_ids"][0] != first


@pytest.mark.parametrize("stream", [False, True])
def test_cut_characters_stay_valid(tiny, stream):
    """Byte 240 opens a character of four bytes, so that every cut is inside one."""
    for most in range(1, 7):
        fields = {"prompt": "Hi", "max_tokens": most, "temperature": 0, "logit_bias": {"240": 100}, "logprobs": 0}
        if stream:
            text = "".join(c["text"] for e in tiny.stream("/v1/completions", fields) for c in e["choices"])
        else:
            text = tiny.complete(**fields)["choices"][0]["text"]
        assert text == "\ufffd" * most
    body = tiny.post("/v1/chat/completions", chat(max_tokens=3, logit_bias={"240": 100}, logprobs=True)).json()
    assert [entry["bytes"] for entry in body["choices"][0]["logprobs"]["content"]] == [[240]] * 3


@pytest.mark.parametrize("extra", [{}, {"top_p": 0}, {"top_k": 1}, {"top_k": -1}, {"min_p": 1}])
def test_tiny_temperatures_are_greedy(tiny, extra):
    greedy = tiny.text(max_tokens=12)
    for temperature in (0, 1e-9, 1e-5):
        assert tiny.text(max_tokens=12, temperature=temperature, **extra) == greedy


def test_tokenize_and_detokenize_are_inverse(tiny):
    for text in ("Hi", "Grüße, 世界 🙂", " \t\n", "a" * 1000):
        body = tiny.post("/tokenize", {"prompt": text}).json()
        assert body["count"] == len(body["tokens"])
        assert body["max_model_len"] == 512
        assert tiny.post("/detokenize", {"tokens": body["tokens"]}).json()["prompt"] == text
    strings = tiny.post("/tokenize", {"prompt": "Hi", "return_token_strs": True}).json()["token_strs"]
    assert len(strings) == 2
    messages = tiny.post("/tokenize", {"messages": [{"role": "user", "content": "Hi"}]}).json()
    assert messages["tokens"][0] == 256 and messages["count"] > 2


def test_special_tokens_in_user_text_stay_text(tiny):
    def ids(content):
        return tiny.post("/tokenize", {"messages": [{"role": "user", "content": content}]}).json()["tokens"]
    assert ids("<|eos|>").count(257) == ids("a").count(257)
    assert tiny.post("/tokenize", {"prompt": "<|eos|>"}).json()["tokens"] == [257]
    assert 257 not in tiny.post("/tokenize", {"prompt": "<|eos|>", "parse_special_tokens": False}).json()["tokens"]


def test_models_names_the_served_one(tiny):
    body = tiny.get("/v1/models").json()
    assert body["object"] == "list"
    [model] = body["data"]
    assert model["object"] == "model" and model["max_model_len"] == 512
    assert tiny.get(f"/v1/models/{model['id']}").json()["id"] == model["id"]
    for name in (model["id"], "default"):
        assert tiny.complete(model=name)["model"] == model["id"]


def test_health_and_ready_answer(tiny):
    assert tiny.get("/health").json()["state"] == "ready"
    assert tiny.get("/ready").status == 200


def test_experts_report_what_was_routed(moe):
    before = moe.get("/v1/experts").json()
    moe.complete(max_tokens=16, ignore_eos=True)
    after = moe.get("/v1/experts").json()
    assert after["precision"] == "fp32"
    assert len(after["layers"]) == 2
    for old, new in zip(before["layers"], after["layers"]):
        assert len(new["experts"]) == 6
        routed = sum(e["tokens"] for e in new["experts"]) - sum(e["tokens"] for e in old["experts"])
        assert routed >= 2 * 16  # two experts for each token, of the prompt too
        assert sum(e["share"] for e in new["experts"]) == pytest.approx(1, abs=1e-6)
        assert all(e["bytes"] > 0 for e in new["experts"])


def test_request_ids_travel(tiny):
    assert tiny.get("/health", **{"X-Request-Id": "abc-1"}).headers["X-Request-Id"] == "abc-1"
    made = [tiny.get("/health").headers["X-Request-Id"] for _ in range(2)]
    assert made[0] and made[0] != made[1]
    answer = tiny.post("/v1/completions", {"prompt": "Hi", "max_tokens": 1}, {"X-Request-Id": "abc-2"})
    assert answer.headers["X-Request-Id"] == "abc-2" and "abc-2" in answer.json()["id"]


def test_a_repeated_request_is_answered_from_memory(tiny):
    fields = {"prompt": "cache me", "max_tokens": 6, "temperature": 0}
    first = tiny.post("/v1/completions", fields)
    second = tiny.post("/v1/completions", fields)
    assert (first.headers["X-Cache"], second.headers["X-Cache"]) == ("miss", "memory")
    assert first.json()["choices"] == second.json()["choices"]
    streamed = tiny.post("/v1/completions", {**fields, "stream": True})
    assert streamed.headers["X-Cache"] == "memory"
    text = "".join(c["text"] for e in events_of(streamed.body) for c in e["choices"])
    assert text == first.json()["choices"][0]["text"]
    for field, value in {"max_tokens": 7, "temperature": 0.5, "logprobs": 1, "stop": ["zz"], "n": 2, "top_k": 5, "echo": True,
                         "logit_bias": {"5": 1}, "presence_penalty": 0.5, "prompt": "cache you"}.items():
        other = tiny.post("/v1/completions", {**fields, field: value})
        assert other.headers["X-Cache"] == "miss", field
    assert tiny.post("/v1/completions", fields, {"Cache-Control": "no-cache"}).headers["X-Cache"] == "miss"


def test_the_context_edge(tiny):
    """Prompt and answer together may fill the context of 512, and not a token more."""
    def ask(length, **fields):
        return tiny.post("/v1/completions", {"prompt": [65] * length, "temperature": 0, "ignore_eos": True, **fields})
    one = ask(511, max_tokens=1).json()
    assert one["usage"]["completion_tokens"] == 1
    rest = ask(511).json()
    assert rest["usage"]["completion_tokens"] == 1 and rest["choices"][0]["finish_reason"] == "length"
    assert ask(512, max_tokens=0, echo=True).status == 200
    for answer in (ask(512, max_tokens=1), ask(500, max_tokens=13), ask(513)):
        assert answer.status == 400
        assert answer.error["code"] == "context_length_exceeded"
        assert "512" in answer.error["message"]
    message = ask(500, max_tokens=13).error["message"]
    assert "500" in message and "13" in message
    streamed = ask(513, stream=True)
    assert streamed.status == 400 and streamed.headers["Content-Type"].startswith("application/json")


def test_json_is_plain(tiny):
    body = tiny.post("/v1/completions", {"prompt": "Hi", "max_tokens": 8, "temperature": 1, "seed": 1, "echo": True,
                                         "logprobs": 1, "top_k": 1, "logit_bias": {"5": -100}})
    assert body.status == 200
    json.loads(body.body.decode("utf-8"), parse_constant=lambda name: pytest.fail(name))
