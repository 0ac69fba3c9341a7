"""The official clients, unchanged."""

import asyncio
import json
import socket

import openai
import pytest
import websockets

from daemon import chat, wait_until


@pytest.fixture
def client(tiny):
    return openai.OpenAI(base_url=f"{tiny.url}/v1", api_key="none", max_retries=0)


def test_openai_chat(client, tiny):
    arguments = {"model": "default", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**arguments)
    assert whole.choices[0].message.role == "assistant"
    pieces = list(client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True}))
    assert pieces[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert "".join(p.choices[0].delta.content or "" for p in pieces if p.choices) == whole.choices[0].message.content


def test_openai_completions_and_models(client, tiny):
    whole = client.completions.create(model="default", prompt=["Hi", "Ho"], max_tokens=5, temperature=0, logprobs=1)
    assert [choice.index for choice in whole.choices] == [0, 1]
    assert len(whole.choices[0].logprobs.token_logprobs) >= 1
    [model] = client.models.list().data
    assert model.id == whole.model


def test_openai_errors(client, tiny):
    with pytest.raises(openai.BadRequestError) as bad:
        client.completions.create(model="default", prompt="Hi", max_tokens=-1)
    assert bad.value.param == "max_tokens"
    with pytest.raises(openai.NotFoundError) as missing:
        client.completions.create(model="gpt-17", prompt="Hi")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError):
        list(client.chat.completions.create(model="default", messages=[], stream=True))


async def gather(socket, wanted):
    """Messages until each of the requests `wanted` is over, by id."""
    messages = {}
    open_requests = set(wanted)
    while open_requests:
        message = json.loads(await asyncio.wait_for(socket.recv(), 60))
        messages.setdefault(message.get("id"), []).append(message)
        if message["type"] in ("done", "error", "cancelled"):
            open_requests.discard(message["id"])
    return messages


def completion(messages):
    return "".join(choice["text"] for message in messages if message["type"] == "chunk"
                   for choice in message["data"]["choices"])


def test_a_websocket_carries_many_requests(tiny):
    expected = {length: tiny.text(max_tokens=length, ignore_eos=True) for length in (5, 20, 60)}

    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{tiny.port}/v1/stream") as socket:
            for length in expected:
                await socket.send(json.dumps({"type": "completion", "id": f"r{length}", "prompt": "Hi", "temperature": 0,
                                              "max_tokens": length, "ignore_eos": True}))
            await socket.send(json.dumps({"type": "chat", "id": "c", **chat()}))
            await socket.send(json.dumps({"type": "generate", "id": "g", "prompt": "Hi", "max_tokens": 3, "temperature": 0}))
            messages = await gather(socket, {"r5", "r20", "r60", "c", "g"})
            for length, text in expected.items():
                assert messages[f"r{length}"][0]["type"] == "started"
                assert completion(messages[f"r{length}"]) == text
            assert messages["c"][-1]["type"] == messages["g"][-1]["type"] == "done"
            await asyncio.wait_for(await socket.ping(), 10)
            await socket.send(json.dumps({"type": "ping"}))
            assert json.loads(await socket.recv())["type"] == "pong"

    asyncio.run(talk())


def test_a_websocket_request_is_cancelled(default_model):
    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{default_model.port}/v1/stream") as socket:
            await socket.send(json.dumps({"type": "completion", "id": "long", "prompt": "Once", "max_tokens": 4000,
                                          "ignore_eos": True, "temperature": 0}))
            while json.loads(await socket.recv())["type"] != "chunk":
                pass
            await socket.send(json.dumps({"type": "cancel", "id": "long"}))
            messages = await gather(socket, {"long"})
            assert messages["long"][-1]["type"] == "cancelled"
            await socket.send(json.dumps({"type": "completion", "id": "long", "prompt": "Once", "max_tokens": 2,
                                          "temperature": 0}))
            messages = await gather(socket, {"long"})
            assert messages["long"][-1]["type"] == "done"

    asyncio.run(talk())


@pytest.mark.parametrize("text", [
    "", "x", "[]", "{}", '{"type": "dance", "id": "a"}', '{"type": "chat"}', '{"type": "chat", "id": ""}',
    '{"type": "chat", "id": 5}', '{"type": "completion", "id": "a", "prompt": [-1]}', '{"type": "cancel", "id": "nobody"}',
])
def test_a_bad_message_gets_an_error_and_the_socket_lives(tiny, text):
    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{tiny.port}/v1/stream") as socket:
            await socket.send(text)
            message = json.loads(await asyncio.wait_for(socket.recv(), 10))
            assert message["type"] == "error" and message["error"]["message"]
            await socket.send(json.dumps({"type": "ping"}))
            assert json.loads(await socket.recv())["type"] == "pong"

    asyncio.run(talk())


def test_an_overlong_message_closes_the_socket_politely(tiny):
    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{tiny.port}/v1/stream") as socket:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.send("x" * ((4 << 20) + 1))
                await asyncio.wait_for(socket.recv(), 30)
            assert closed.value.rcvd.code == 1009

    asyncio.run(talk())


def test_an_ordinary_request_for_the_websocket_path(tiny):
    assert tiny.get("/v1/stream").status == 426


def text_frame(payload):
    """Masked with zeros (RFC 6455, 5.2)."""
    return b"\x81" + bytes([0x80 | 126]) + len(payload).to_bytes(2, "big") + bytes(4) + payload


def test_a_websocket_client_that_reads_nothing_is_not_read_either(tiny):
    upgrade = (b"GET /v1/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.settimeout(2)
        deaf.connect(("127.0.0.1", tiny.port))
        deaf.sendall(upgrade)
        assert deaf.recv(1024).startswith(b"HTTP/1.1 101")
        body = {"type": "completion", "prompt": "Hi" * 200, "echo": True, "logprobs": 20, "max_tokens": 1,
                "temperature": 0, "stream": False, "user": "x" * 60_000}
        with pytest.raises(TimeoutError):
            for number in range(1000):
                deaf.sendall(text_frame(json.dumps({**body, "id": f"{number}"}).encode()))
                wait_until(lambda: tiny.metric("websocket_streams") == 0, "end of the request")
        assert number < 200
