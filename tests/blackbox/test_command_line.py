"""The program itself: what it prints, its exit codes, and how it starts and ends."""

import json
import os
import resource
import select
import signal
import socket
import subprocess
import threading

import pytest

from daemon import DEFAULT_MODEL, FAULTS, PATIENCE, PROGRAM, SLOWNESS, TINY_DENSE, Daemon, read_all, run, wait_until


def test_version_and_help():
    assert run("--version").stdout.startswith("troupe 0.")
    shown = run("--help").stdout
    for command in ("serve", "upcycle", "inspect", "check-config"):
        assert command in shown
    shown = run("serve", "--help").stdout
    for word in ("--port", "8000", "TROUPE_SERVER_PORT", "--max-num-seqs", "--no-preload-experts"):
        assert word in shown, word


@pytest.mark.parametrize("arguments", [
    [], ["dance"], ["serve"], ["serve", "--no-such-flag"], ["serve", "--model", "x", "--port", "eighty"],
    ["serve", "--model", "x", "--port", "70000"], ["serve", "--model", "x", "--precision", "int9"], ["check-config"],
    ["upcycle"], ["inspect"],
])
def test_a_wrong_command_line_is_exit_code_2(arguments):
    ended = run(*arguments)
    assert ended.returncode == 2, ended
    assert ended.stderr.strip()


def test_what_is_wrong_with_a_command_line_is_named():
    assert "'dance'" in run("dance").stderr
    assert "--prot 9" in run("serve", "--prot", "9").stderr
    assert "{false}" not in run("serve", "--help").stdout


@pytest.mark.parametrize("path,word", [("/no/such/model", "/no/such/model"), ("/dev/null", "/dev/null"), ("/tmp", "config.json")])
def test_a_model_that_is_none_is_exit_code_1(path, word):
    ended = run("serve", "--port", "0", "--model", path)
    assert ended.returncode == 1, ended
    assert word in ended.stderr


def test_a_taken_port_says_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("serve", "--model", TINY_DENSE, "--port", port)
    assert ended.returncode == 1
    assert str(port) in ended.stderr and "--port" in ended.stderr, ended.stderr


def test_a_context_longer_than_the_models_is_refused():
    ended = run("serve", "--port", "0", "--model", TINY_DENSE, "--max-model-len", 100_000)
    assert ended.returncode == 1 and "512" in ended.stderr


def test_too_little_memory_says_how_much_is_needed():
    ended = run("serve", "--port", "0", "--model", TINY_DENSE, "--kv-cache-memory", 1024)
    assert ended.returncode == 1 and "--kv-cache-memory" in ended.stderr


def test_configuration_comes_from_file_environment_and_flags(tmp_path):
    file = tmp_path / "troupe.yaml"
    file.write_text(f"model: {{path: {TINY_DENSE}, name: from-file}}\nlimits: {{queue_deadline: 7s}}\n")
    checked = run("check-config", file)
    assert checked.returncode == 0 and "from-file" in checked.stdout and "7s" in checked.stdout
    with Daemon(TINY_DENSE, "--config", file, environment={"TROUPE_MODEL_MAX_CONTEXT": "128"}) as daemon:
        [model] = daemon.get("/v1/models").json()["data"]
        assert (model["id"], model["max_model_len"]) == ("from-file", 128)
    file.write_text("server: {prot: 1}\n")
    refused = run("check-config", file)
    assert refused.returncode == 1 and "prot" in refused.stderr and ":1" in refused.stderr


def test_the_log_goes_to_a_file(tmp_path):
    log = tmp_path / "troupe.log"
    with Daemon(TINY_DENSE, "--log-file", log) as daemon:
        wait_until(lambda: any(str(log) in line for line in daemon.output), "line that names the log")
    assert "info" in log.read_text()


@pytest.mark.parametrize("model", [TINY_DENSE, FAULTS / "control-gguf.gguf"], ids=["folder", "gguf"])
def test_a_chat_template_replaces_the_models_own(tmp_path, model):
    template = tmp_path / "mine.jinja"
    template.write_text("{% for m in messages %}[{{ m.content }}]{% endfor %}")
    with Daemon(model, "--chat-template", template) as daemon:
        chat = daemon.post("/tokenize", {"messages": [{"role": "user", "content": "Hi"}]}).json()
        text = daemon.post("/tokenize", {"prompt": "[Hi]", "add_special_tokens": False}).json()
        assert chat["tokens"] == text["tokens"]
    for damage in (lambda: template.write_text("{% for %}"), template.unlink):
        damage()
        ended = run("serve", "--port", "0", "--model", model, "--chat-template", template)
        assert ended.returncode == 1 and "mine.jinja" in ended.stderr, ended


def test_a_reader_of_the_output_may_go_away():
    process = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--model", TINY_DENSE], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    assert b"listens on" in process.stdout.readline()
    process.stdout.close()
    process.send_signal(signal.SIGTERM)  # it says so on its output
    assert process.wait(PATIENCE) == 0


def test_a_closed_terminal_lets_answers_end():
    """It sends the signal twice: the shell to its jobs, the kernel to the foreground."""
    with Daemon(DEFAULT_MODEL, "--drain-timeout", "1h") as daemon:
        connection, data = begin_stream(daemon, 50)
        daemon.stop(signal.SIGHUP)
        wait_until(lambda: daemon._line_with("Stopping"), "word of the drain")
        daemon.stop(signal.SIGHUP)
        results = []
        finish(connection, data, results)
        assert b"data: [DONE]" in results[0]
        assert daemon.process.wait(PATIENCE) == 0


def test_nohup_keeps_it_running():
    with Daemon(TINY_DENSE, prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as daemon:
        daemon.stop(signal.SIGHUP)
        assert daemon.complete()["choices"]
        assert daemon.get("/ready").status == 200


def test_closed_standard_streams_lead_nowhere():
    def close_all():
        for standard in (0, 1, 2):
            os.close(standard)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([PROGRAM, "serve", "--model", TINY_DENSE, "--port", str(port)], preexec_fn=close_all)

    def answers():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
            return True
        except ConnectionRefusedError:
            return process.poll() is not None

    wait_until(answers, "an open port")
    assert [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (0, 1, 2)] == ["/dev/null"] * 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(SLOWNESS > 1, reason="sanitizers need all of the address space")
def test_too_little_room_for_threads_is_said_and_ends_the_program():
    """Their stacks alone take more than the process may have."""
    limited = lambda: resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
    ended = run("serve", "--port", "0", "--model", TINY_DENSE, "--preparers", "256", preexec_fn=limited)
    assert ended.returncode == 1
    assert "threads" in ended.stderr and "--preparers" in ended.stderr, ended


def test_more_clients_than_open_files_are_turned_away():
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
    with Daemon(TINY_DENSE, prepare=few) as daemon:
        assert "at most 45 connections" in daemon.log_text()
        clients = [daemon.connect() for _ in range(100)]
        answered = lambda: select.select(clients, [], [], 0)[0]
        wait_until(lambda: len(answered()) >= 50, "answers to all that are too many")
        for connection in answered():
            assert read_all(connection).startswith(b"HTTP/1.1 503")
        for connection in clients:
            connection.close()
        wait_until(lambda: daemon.get("/health").status == 200, "room again")


def test_health_answers_while_the_model_is_loading():
    with Daemon(DEFAULT_MODEL, ready=False) as daemon:
        first = daemon.get("/health")
        assert first.status == 200
        if first.json()["state"] == "loading":
            assert daemon.get("/ready").status in (200, 503)
            early = daemon.post("/v1/completions", {"prompt": "Hi", "max_tokens": 1})
            assert early.status in (200, 503)
            if early.status == 503:
                assert int(early.headers["Retry-After"]) >= 1
        daemon.wait_ready()


def begin_stream(daemon, tokens):
    connection = daemon.connect()
    body = json.dumps({"prompt": "Hi", "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}).encode()
    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       b"Connection: close\r\nCache-Control: no-store\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)
    data = connection.recv(65536)
    while b"data: " not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return connection, data


def finish(connection, data, results):
    while piece := connection.recv(65536):
        data += piece
    connection.close()
    results.append(data)


def text_of(data):
    events = [line[len("data: "):] for line in data.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["text"] for event in events for choice in json.loads(event)["choices"])


def test_running_answers_end_before_the_program_does():
    with Daemon(TINY_DENSE) as daemon:
        expected = daemon.text(max_tokens=400, ignore_eos=True)
        results, threads = [], []
        for connection, data in [begin_stream(daemon, 400) for _ in range(8)]:
            threads.append(threading.Thread(target=finish, args=(connection, data, results)))
            threads[-1].start()
        daemon.stop()
        for thread in threads:
            thread.join(60)
        assert len(results) == 8
        for data in results:
            assert b"data: [DONE]" in data
            assert text_of(data) == expected
        assert daemon.process.wait(30) == 0


def test_a_second_signal_ends_at_once():
    with Daemon(DEFAULT_MODEL, "--drain-timeout", "1h") as daemon:
        connection, _ = begin_stream(daemon, 4000)
        daemon.stop()
        wait_until(lambda: daemon._line_with("Stopping"), "word of the drain")
        daemon.stop(signal.SIGINT)
        assert daemon.process.wait(10) == 1
        connection.close()
        daemon.process.returncode = 0  # the exit code above is the right one


def test_a_drain_that_takes_too_long_ends_with_an_error_event():
    with Daemon(DEFAULT_MODEL, "--drain-timeout", "200ms") as daemon:
        connection, data = begin_stream(daemon, 4000)
        daemon.stop()
        results = []
        finish(connection, data, results)
        assert b'"error"' in results[0] and b"[DONE]" not in results[0]
        assert daemon.process.wait(30) == 0
