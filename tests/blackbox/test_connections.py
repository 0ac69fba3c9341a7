"""HTTP as clients really use it: reused, pipelined, slow, cut, half-closed and unread connections; floods."""

import asyncio
import json
import socket

import aiohttp
import pytest

from daemon import DEFAULT_MODEL, TINY_DENSE, Daemon, events_of, read_all, wait_until

BODY = json.dumps({"prompt": "Hi", "max_tokens": 2, "temperature": 0}).encode()


def request_bytes(body=BODY, path=b"/v1/completions", extra=b"", method=b"POST"):
    return (method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + extra +
            b"Content-Length: %d\r\n\r\n" % len(body) + body)


def status_of(data):
    assert data.startswith(b"HTTP/1.1 "), data[:100]
    return int(data[9:12])


def test_a_thousand_requests_over_one_pool(tiny):
    async def all_of_them():
        connector = aiohttp.TCPConnector(limit=16)
        async with aiohttp.ClientSession(connector=connector) as session:
            async def one(index):
                stream = index % 2 == 0
                fields = {"prompt": f"{index}", "max_tokens": 3, "temperature": 0, "stream": stream}
                async with session.post(f"{tiny.url}/v1/completions", json=fields) as answer:
                    assert answer.status == 200
                    body = await answer.read()
                    if stream:
                        events_of(body)
                    else:
                        json.loads(body)

            # A bounded number in flight: the queue has a limit, and this is no test of it.
            gate = asyncio.Semaphore(64)

            async def gated(index):
                async with gate:
                    await one(index)
            await asyncio.gather(*(gated(index) for index in range(1000)))

    asyncio.run(all_of_them())


def test_pipelined_requests_are_answered_in_order(tiny):
    last = request_bytes(extra=b"Connection: close\r\n")
    data = tiny.raw(request_bytes(b"", b"/health", method=b"GET") + request_bytes() + b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n" + last)
    assert [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]] == [200, 200, 404, 200]


def test_a_connection_is_kept_and_closed_as_asked(tiny):
    with tiny.connect() as connection:
        for _ in range(3):
            connection.sendall(request_bytes())
            data = b""
            while b"\r\n\r\n" not in data or not data.rstrip().endswith(b"}"):
                data += connection.recv(65536)
            assert status_of(data) == 200
    assert b"connection: close" in tiny.raw(request_bytes(extra=b"Connection: close\r\n")).lower()


def test_chunked_bodies_and_expect_continue(tiny):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    chunks = b"".join(b"1;ext=1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\nTrailer: x\r\n\r\n"
    whole = tiny.raw(request_bytes(extra=b"Connection: close\r\n")).split(b"\r\n\r\n", 1)[1]
    chunked = tiny.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks).split(b"\r\n\r\n", 1)[1]
    assert json.loads(chunked)["choices"] == json.loads(whole)["choices"]
    with tiny.connect() as connection:
        connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert status_of(connection.recv(4096)) == 100
        connection.sendall(BODY)
        assert status_of(read_all(connection)) == 200
    both = tiny.raw(head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert status_of(both) == 400


@pytest.mark.parametrize("data", [
    b"\r\n\r\n\r\n", b"HELLO\r\n\r\n", b"GET /health\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET /health HTTP/1.1\r\nNo colon here\r\n\r\n", b"GET /hea\x00lth HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"POST /generate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
], ids=lambda data: repr(data[:24]))
def test_what_is_no_http_is_answered_or_dropped(tiny, data):
    answer = tiny.raw(data, half_close=True)
    assert answer == b"" or status_of(answer) in (400, 413, 505)


def test_limits_on_header_and_body(tiny):
    long_header = tiny.raw(b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n")
    assert status_of(long_header) in (400, 431)
    announced = tiny.raw(b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Content-Length: 4194305\r\n\r\n")
    assert status_of(announced) == 413
    assert json.loads(announced.split(b"\r\n\r\n", 1)[1])["error"]["message"]
    with tiny.connect() as connection:
        connection.sendall(b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(80):
                connection.sendall(b"10000\r\n" + b"a" * 65536 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it need not read what it has refused
        assert status_of(read_all(connection)) == 413


@pytest.mark.parametrize("begin,piece", [
    (b"5;name=", b"a" * 65536), (b"", b"0" * 65536), (b"0\r\nX: ", b"a" * 65536), (b"0\r\n", b"X: y\r\n" * 10_000),
    (b"", b"1;name=" + b"a" * 60_000 + b"\r\nx\r\n"),
], ids=["extension", "size", "trailer", "trailers", "extensions"])
def test_chunks_cannot_be_framed_without_end(tiny, begin, piece):
    with tiny.connect() as connection:
        connection.sendall(b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n" + begin)
        try:
            for _ in range(32):
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it need not read what it has refused
        assert status_of(read_all(connection)) == 431


def test_a_slow_header_is_given_up():
    with Daemon(TINY_DENSE, "--header-timeout", "300ms", "--body-timeout", "300ms") as daemon:
        assert status_of(daemon.raw(b"POST /generate HTTP/1.1\r\nHost:")) == 408
        assert status_of(daemon.raw(request_bytes()[:-5])) == 408
        assert daemon.get("/health").status == 200


def test_a_half_closed_client_gets_its_answer(tiny):
    data = tiny.raw(request_bytes(extra=b"Connection: close\r\n"), half_close=True)
    assert status_of(data) == 200


def test_clients_that_vanish_inside_a_request(tiny):
    whole = request_bytes()
    for cut in range(0, len(whole), 7):
        with tiny.connect() as connection:
            connection.sendall(whole[:cut])


def in_flight(daemon):
    return daemon.metric("troupe:num_requests_running") + daemon.metric("troupe:num_requests_waiting")


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_work(default_model, stream):
    body = json.dumps({"prompt": "Once upon a time", "max_tokens": 4000, "ignore_eos": True, "temperature": 0,
                       "stream": stream}).encode()
    connection = default_model.connect()
    connection.sendall(request_bytes(body, extra=b"Cache-Control: no-store\r\n"))
    if stream:
        assert connection.recv(1024)
    wait_until(lambda: in_flight(default_model) == 1, "running request")
    connection.close()
    wait_until(lambda: in_flight(default_model) == 0, "end of the abandoned request")
    computed = default_model.metric("troupe:generation_tokens_total")
    assert default_model.text(prompt="A", max_tokens=3, ignore_eos=True)
    assert default_model.metric("troupe:generation_tokens_total") == computed + 3


def test_an_unread_stream_pauses_and_others_go_on():
    with Daemon(DEFAULT_MODEL, "--stream-window", "1KiB", "--write-timeout", "1h") as daemon:
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            reader.connect(("127.0.0.1", daemon.port))
            body = json.dumps({"prompt": "Once", "max_tokens": 100, "ignore_eos": True, "temperature": 0,
                               "stream": True, "logprobs": 20, "return_token_ids": True}).encode()
            reader.sendall(request_bytes(body, extra=b"Connection: close\r\nCache-Control: no-store\r\n"))
            assert daemon.text(prompt="Once", max_tokens=4)
            data = read_all(reader)
        assert b"data: [DONE]" in data


def test_a_flood_is_refused_with_a_time_to_wait():
    with Daemon(TINY_DENSE, "--max-queued-requests", 2, "--max-num-seqs", 1, "--max-num-batched-tokens", 16,
                "--queue-timeout", "1min") as daemon:
        async def flood():
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                async def one(seed):
                    fields = {"prompt": "Hi", "max_tokens": 300, "ignore_eos": True, "temperature": 1, "seed": seed}
                    async with session.post(f"{daemon.url}/v1/completions", json=fields) as answer:
                        return answer.status, answer.headers.get("Retry-After"), await answer.json()
                return await asyncio.gather(*(one(seed) for seed in range(40)))

        answers = asyncio.run(flood())
        refused = [answer for answer in answers if answer[0] != 200]
        assert refused and len(refused) < 40
        for status, wait, body in refused:
            assert status == 503
            assert int(wait) >= 1
            assert body["error"]["code"] == "server_is_overloaded"
        for status, _, body in answers:
            if status == 200:
                assert body["usage"]["completion_tokens"] == 300
        wait_until(lambda: daemon.get("/ready").status == 200, "readiness after the flood")


def test_a_deadline_names_the_stage():
    with Daemon(DEFAULT_MODEL, "--max-num-seqs", 1) as daemon:
        running = daemon.connect()
        body = json.dumps({"prompt": "Once", "max_tokens": 4000, "ignore_eos": True, "temperature": 0, "stream": True}).encode()
        running.sendall(request_bytes(body, extra=b"Cache-Control: no-store\r\n"))
        assert running.recv(1024)
        late = daemon.post("/v1/completions", {"prompt": "Hi", "max_tokens": 1, "temperature": 0}, {"X-Request-Timeout-Ms": "100"})
        assert late.status == 504
        assert late.error["code"] == "deadline_exceeded"
        assert late.error["stage"]
        running.close()
        cut = daemon.post("/v1/completions", {"prompt": "Hi", "max_tokens": 4000, "ignore_eos": True, "temperature": 0},
                          {"X-Request-Timeout-Ms": "300"})
        assert cut.status == 504 and cut.error["stage"]
