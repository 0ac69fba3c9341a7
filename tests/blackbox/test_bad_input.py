"""Whatever a client sends, it gets a clear answer and the daemon goes on as before (the fixture compares bytes)."""

import json

import pytest

from daemon import FAULTS, chat

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"

# field, the body that holds it (None: the plain completion)
BAD_FIELDS = [
    ("prompt", {"max_tokens": 1}),
    ("prompt", {"prompt": None}),
    ("prompt", {"prompt": 5}),
    ("prompt", {"prompt": {}}),
    ("prompt", {"prompt": []}),
    ("prompt", {"prompt": [[]]}),
    ("prompt", {"prompt": ["a", 5]}),
    ("prompt", {"prompt": ["a", [1]]}),
    ("prompt", {"prompt": [-1]}),
    ("prompt", {"prompt": [260]}),
    ("prompt", {"prompt": [1, 2**40]}),
    ("prompt", {"prompt": [1.5]}),
    ("prompt", {"prompt": ["1", "2", None]}),
    ("max_tokens", {"max_tokens": -1}),
    ("max_tokens", {"max_tokens": 1.5}),
    ("max_tokens", {"max_tokens": "5"}),
    ("max_tokens", {"max_tokens": True}),
    ("max_tokens", {"max_tokens": 2**63}),
    ("max_tokens", {"max_tokens": 10**30}),
    ("temperature", {"temperature": -0.1}),
    ("temperature", {"temperature": 2.1}),
    ("temperature", {"temperature": "0"}),
    ("temperature", {"temperature": True}),
    ("top_p", {"top_p": 1.1}),
    ("top_p", {"top_p": -1}),
    ("top_k", {"top_k": -2}),
    ("top_k", {"top_k": 0.5}),
    ("min_p", {"min_p": 2}),
    ("presence_penalty", {"presence_penalty": 3}),
    ("frequency_penalty", {"frequency_penalty": -3}),
    ("n", {"n": 0}),
    ("n", {"n": -1}),
    ("n", {"n": 129}),
    ("n", {"n": 10**9}),
    ("stop", {"stop": ""}),
    ("stop", {"stop": ["a", ""]}),
    ("stop", {"stop": ["a", None]}),
    ("stop", {"stop": [5]}),
    ("stop", {"stop": 5}),
    ("stop", {"stop": ["x"] * 10_000}),
    ("stop", {"stop": "x" * 1_000_000}),
    ("stop_token_ids", {"stop_token_ids": [260]}),
    ("stop_token_ids", {"stop_token_ids": ["a"]}),
    ("seed", {"seed": "1"}),
    ("seed", {"seed": 1.5}),
    ("logprobs", {"logprobs": -1}),
    ("logprobs", {"logprobs": 10**6}),
    ("logit_bias", {"logit_bias": {"260": 1}}),
    ("logit_bias", {"logit_bias": {"-1": 1}}),
    ("logit_bias", {"logit_bias": {"05": 1}}),
    ("logit_bias", {"logit_bias": {"Hi": 1}}),
    ("logit_bias", {"logit_bias": {"5": 101}}),
    ("logit_bias", {"logit_bias": {"5": "1"}}),
    ("logit_bias", {"logit_bias": [1]}),
    ("stream", {"stream": "yes"}),
    ("stream", {"stream": 1}),
    ("stream_options", {"stream_options": {"include_usage": True}}),
    ("min_tokens", {"min_tokens": 9}),
    ("echo", {"echo": "true"}),
    ("model", {"model": 5}),
]

BAD_CHATS = [
    ("messages", {}),
    ("messages", {"messages": []}),
    ("messages", {"messages": "Hi"}),
    ("messages[0]", {"messages": ["Hi"]}),
    ("messages[0].role", {"messages": [{"content": "Hi"}]}),
    ("messages[0].role", {"messages": [{"role": "emperor", "content": "Hi"}]}),
    ("messages[0].content", {"messages": [{"role": "user"}]}),
    ("messages[0].content", {"messages": [{"role": "user", "content": 5}]}),
    ("messages[0].content[0].type", {"messages": [{"role": "user", "content": [{"type": "smell"}]}]}),
    ("max_tokens", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 0}),
    ("top_logprobs", {"messages": [{"role": "user", "content": "Hi"}], "top_logprobs": 1}),
]


def names(param, field):
    return param == field or (param or "").startswith((field + "[", field + "."))


@pytest.mark.parametrize("field,fields", BAD_FIELDS, ids=lambda value: str(value)[:40])
def test_a_bad_field_is_named(tiny, field, fields):
    body = {"prompt": "Hi", "max_tokens": 8, "temperature": 0, **fields}
    if fields == {"max_tokens": 1}:
        del body["prompt"]
    answer = tiny.post(COMPLETIONS, body)
    assert answer.status == 400, answer
    assert names(answer.error["param"], field), answer
    assert answer.error["type"] == "invalid_request_error"


@pytest.mark.parametrize("field,fields", BAD_CHATS, ids=lambda value: str(value)[:40])
def test_a_bad_chat_field_is_named(tiny, field, fields):
    answer = tiny.post(CHAT, fields)
    assert answer.status == 400, answer
    assert names(answer.error["param"], field), answer


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"01", b"+1", b"0x1", b".5", b"1."])
def test_numbers_that_json_does_not_have(tiny, value):
    answer = tiny.post_bytes(COMPLETIONS, b'{"prompt": "Hi", "max_tokens": 1, "temperature": ' + value + b"}")
    assert answer.status == 400, answer
    assert answer.error["code"] == "invalid_request"


@pytest.mark.parametrize("body", [
    b"", b" ", b"null", b"[]", b'"Hi"', b"5", b"{", b'{"prompt": "Hi"', b'{"prompt": "Hi",}', b'{"prompt": "Hi"} x',
    b'{prompt: "Hi"}', b"{'prompt': 'Hi'}", b'{"prompt": "Hi" /* why */}', b'\xef\xbb\xbf{"prompt": "Hi"}', b"\x00" * 10,
    b'{"prompt": "a\nb"}',
    b'{"prompt": "Hi", "prompt": "Ho"}', b'{"prompt": "Hi", "logit_bias": {"5": 1, "5": 2}}',
    b'{"prompt": "\xff"}', b'{"prompt": "\xc3"}', b'{"prompt": "\xc0\xaf"}', b'{"prompt": "\xed\xa0\x80"}',
    b'{"prompt": "\xf4\x90\x80\x80"}', b'{"\xff": 1}',
    b'{"prompt": "\\ud800"}', b'{"prompt": "\\udc00\\ud800"}', b'{"prompt": "\\ud800x"}', b'{"prompt": "\\x41"}',
    b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"x": ' + b'{"a": ' * 100 + b"1" + b"}" * 100 + b"}",
], ids=lambda body: repr(body[:24]))
def test_text_that_is_no_sound_json(tiny, body):
    answer = tiny.post_bytes(COMPLETIONS, body)
    assert answer.status == 400, answer
    assert answer.error["code"] == "invalid_request"


def test_a_character_outside_the_basic_plane_may_be_escaped(tiny):
    answer = tiny.post_bytes("/tokenize", b'{"prompt": "\\ud83d\\ude42"}')
    assert answer.json()["tokens"] == list("🙂".encode())


def test_nesting_up_to_the_limit_is_fine(tiny):
    assert tiny.post_bytes(COMPLETIONS, b'{"prompt": "Hi", "max_tokens": 1, "user": ' + b"[" * 60 + b"]" * 60 + b"}").status in (200, 400)


@pytest.mark.parametrize("prompt", ["", ["", "a"]])
def test_an_empty_prompt_gets_an_answer_or_a_reason(tiny, prompt):
    answer = tiny.post(COMPLETIONS, {"prompt": prompt, "max_tokens": 1})
    assert answer.status == 400 and names(answer.error["param"], "prompt") or answer.status == 200


def test_unknown_names(tiny):
    missing = tiny.post(COMPLETIONS, {"prompt": "Hi", "model": "gpt-17"})
    assert missing.status == 404
    assert missing.error["code"] == "model_not_found" and missing.error["param"] == "model"
    assert "gpt-17" in missing.error["message"]
    assert tiny.get("/v1/nothing").status == 404 and tiny.get("/v1/nothing").error["code"] == "not_found"
    assert tiny.get("/v1/models/gpt-17").status == 404
    ignored = tiny.post(COMPLETIONS, {"prompt": "Hi", "max_tokens": 1, "no_such_field": 5})
    assert ignored.status == 200


@pytest.mark.parametrize("method,path", [
    ("GET", COMPLETIONS), ("PUT", COMPLETIONS), ("DELETE", CHAT), ("POST", "/health"), ("POST", "/metrics"),
    ("PATCH", "/v1/models"), ("GET", "/tokenize"),
])
def test_a_wrong_method_names_the_right_one(tiny, method, path):
    answer = tiny.request(method, path, body=b"{}" if method in ("PUT", "POST", "PATCH") else None,
                          headers={"Content-Type": "application/json"})
    assert answer.status == 405
    assert answer.headers["Allow"]
    assert answer.error["code"] == "method_not_allowed"


def test_a_wrong_media_type(tiny):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
        assert tiny.post_bytes(COMPLETIONS, b'{"prompt": "Hi"}', {"Content-Type": kind}).status == 415
    assert tiny.post_bytes(COMPLETIONS, b'{"prompt": "Hi"}', {"Content-Encoding": "gzip"}).status == 415
    good = tiny.post_bytes(COMPLETIONS, b'{"prompt": "Hi", "max_tokens": 1}',
                           {"Content-Type": "application/json; charset=UTF-8"})
    assert good.status == 200


def test_a_template_that_objects_gives_its_message(tiny):
    # The tiny model's template joins strings, and an object has none.
    answer = tiny.post(CHAT, chat(tools=[{"type": "function"}]))
    assert answer.status == 400 and names(answer.error["param"], "tools")


def expectations():
    wanted = {}
    for line in (FAULTS / "EXPECT.tsv").read_text().splitlines():
        name, outcome = line.split("\t", 1)
        wanted[name] = outcome
    return wanted


def request_files():
    later = ("B37", "B45")  # the result cache's keys and structured output have tests of their own
    return sorted(path for path in FAULTS.glob("B*.json") if not path.name.startswith(later))


NAMED_FIELD = {"B03": "stop", "B10": "logit_bias", "B13": "prompt", "B18": "messages[0].content[0].type"}


@pytest.mark.parametrize("path", request_files(), ids=lambda path: path.stem)
def test_the_requests_that_broke_other_servers(tiny, path):
    body = path.read_bytes()
    outcome = expectations()[path.stem]
    answer = tiny.post_bytes(CHAT if b'"messages"' in body else COMPLETIONS, body)
    if outcome.startswith("400"):
        assert answer.status == 400, answer
        assert names(answer.error["param"], NAMED_FIELD[path.stem[:3]]), answer
    elif outcome.startswith("200 or 400"):
        assert answer.status in (200, 400), answer
    else:
        assert outcome.startswith("200")
        assert answer.status == 200, answer
        json.loads(answer.body, parse_constant=lambda name: pytest.fail(name))
