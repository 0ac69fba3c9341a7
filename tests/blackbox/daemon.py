"""Starts the real program and asks it over real sockets.

A test gets a `Daemon` and nothing else of Troupe: what it can see is what a client can see. Every wait is for a state
(a line of output, /ready, the end of the process) and has a bound.
"""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from prometheus_client.parser import text_string_to_metric_families

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TROUPE", str(REPOSITORY / "build/release/troupe"))
LOGS = pathlib.Path(os.environ.get("TROUPE_LOGS", REPOSITORY / "build/log/blackbox"))
FAULTS = REPOSITORY / "tests/data/faults"
TINY_DENSE = FAULTS / "control"  # Llama, 260 tokens, context 512, with a chat template
TINY_MOE = REPOSITORY / "tests/data/models/mixtral"  # 2 layers of 6 experts, 2 for a token, context 256
DEFAULT_MODEL = REPOSITORY / "models/SmolLM2-135M-Instruct-8x2.gguf"

SLOWNESS = int(os.environ.get("TROUPE_SLOWNESS", "1"))  # of this build, in multiples of a release
PATIENCE = 60.0 * SLOWNESS  # seconds; enough on a busy machine
# For tests that compute much: time limits that mean the same in every build.
PATIENT_FLAGS = ("--queue-timeout", f"{5 * SLOWNESS}s", "--stall-limit", f"{30 * SLOWNESS}s")


def wait_until(condition, what, patience=PATIENCE):
    """Polls until `condition()` is truthy and returns that value."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} after {patience} s")
        time.sleep(0.01)


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body, parse_constant=_refuse_constant)

    @property
    def error(self):
        """The error object, checked for OpenAI's shape."""
        error = self.json()["error"]
        assert {"message", "type", "param", "code"} <= error.keys(), error
        assert isinstance(error["message"], str) and error["message"], error
        assert isinstance(error["code"], str), error
        return error

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


def _refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")


def events_of(body):
    """The data of each server-sent event; the last must be [DONE], which is left out."""
    blocks = body.decode("utf-8").split("\n\n")
    assert blocks[-1] == "", f"the stream ends inside an event: {blocks[-1]!r}"
    data = [block[len("data: "):] for block in blocks[:-1] if not block.startswith(":")]
    assert data and data[-1] == "[DONE]", f"the stream ends with {data[-1:]!r}"
    return [json.loads(text, parse_constant=_refuse_constant) for text in data[:-1]]


class Daemon:
    def __init__(self, model, *flags, ready=True, environment=None, prepare=None):
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log_path = LOGS / f"{os.getpid()}-{time.monotonic_ns()}.log"
        self.log = open(self.log_path, "wb")
        command = [PROGRAM, "serve", "--model", str(model), "--port", "0", *map(str, flags)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log,
                                        env={**os.environ, **(environment or {})}, preexec_fn=prepare)
        self.output = []
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        line = wait_until(lambda: self._line_with("listens on") or self.process.poll() is not None, "listening line")
        if line is True:
            raise AssertionError(f"the daemon ended with {self.process.returncode}: {self.log_text()}")
        self.url = next(word for word in line.split() if word.startswith("http://"))
        self.port = int(self.url.rsplit(":", 1)[1])
        if ready:
            self.wait_ready()

    def _read_output(self):
        for line in self.process.stdout:
            self.output.append(line.decode())

    def _line_with(self, text):
        return next((line for line in self.output if text in line), None)

    def wait_ready(self):
        wait_until(lambda: self.process.poll() is not None or self.get("/ready").status == 200, "readiness")
        assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log_text()}"

    def log_text(self):
        self.log.flush()
        return self.log_path.read_text(errors="replace")[-4000:]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        code = self.process.returncode
        if kind is None:
            assert code == 0, f"exit code {code}: {self.log_text()}"
            self.log_path.unlink()  # kept where a test failed

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    # Plain requests, each on a connection of its own.

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post_bytes(self, path, body, headers=None):
        return self.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})

    def post(self, path, fields, headers=None):
        return self.post_bytes(path, json.dumps(fields).encode(), headers)

    def complete(self, **fields):
        """A greedy completion past the result cache, as a dictionary; 200 or the test fails."""
        fields = {"prompt": "Hi", "max_tokens": 8, "temperature": 0, **fields}
        answer = self.post("/v1/completions", fields, {"Cache-Control": "no-store"})
        assert answer.status == 200, answer
        return answer.json()

    def text(self, **fields):
        return self.complete(**fields)["choices"][0]["text"]

    def stream(self, path, fields, headers=None):
        """The events of a streamed answer."""
        answer = self.post(path, {**fields, "stream": True}, headers)
        assert answer.status == 200, answer
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        return events_of(answer.body)

    def raw(self, data, timeout=PATIENCE, half_close=False):
        """Sends bytes and returns everything until the server closes."""
        with self.connect(timeout) as connection:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def connect(self, timeout=PATIENCE):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def metrics(self):
        answer = self.get("/metrics")
        assert answer.status == 200
        return {family.name: family for family in text_string_to_metric_families(answer.body.decode())}

    def metric(self, name, **labels):
        """The sum of a sample over all label sets that have `labels`."""
        total = 0.0
        for family in self.metrics().values():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    total += sample.value
        return total


def read_all(connection):
    data = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def run(*arguments, **options):
    """The program with these arguments, to its end."""
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE, **options)


def chat(text="Hi", **fields):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0, **fields}
