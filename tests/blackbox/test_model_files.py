"""Model files that break their format's rules: refused with a place in the message, exit code 1, quickly, by both
`serve` and `inspect`."""

import os
import subprocess

import pytest

from daemon import FAULTS, PROGRAM, TINY_DENSE, TINY_MOE, Daemon, run


def malformed():
    names = [line.split("\t")[0] for line in (FAULTS / "EXPECT.tsv").read_text().splitlines()]
    models = [name for name in names if name.startswith(("B26", "B27", "B28", "B29"))]
    return [FAULTS / name if (FAULTS / name).is_dir() else FAULTS / f"{name}.gguf" for name in models]


@pytest.mark.parametrize("path", malformed(), ids=lambda path: path.name)
def test_a_malformed_model_is_refused(path):
    assert path.exists()
    for command in (["inspect", path], ["serve", "--port", "0", "--model", path]):
        ended = run(*command)
        assert ended.returncode == 1, ended
        assert path.name.removesuffix(".gguf") in ended.stderr or "safetensors" in ended.stderr, ended.stderr
        assert "terminate" not in ended.stderr and "Sanitizer" not in ended.stderr, ended.stderr


@pytest.mark.parametrize("name", ["control", "control-gguf.gguf"])
def test_the_sound_twin_loads(name):
    assert run("inspect", FAULTS / name).returncode == 0
    with Daemon(FAULTS / name) as daemon:
        assert daemon.complete()["usage"]["completion_tokens"] >= 1


def copy_control(to):
    for file in TINY_DENSE.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


@pytest.mark.parametrize("name,damage,word", [
    ("config.json", lambda data: b"{", "config.json"),
    ("config.json", lambda data: data.replace(b"LlamaForCausalLM", b"OtherForCausalLM"), "OtherForCausalLM"),
    ("config.json", lambda data: data.replace(b'"hidden_size":32', b'"hidden_size":-32'), "hidden_size"),
    ("config.json", lambda data: data.replace(b'"hidden_size":32', b'"hidden_size":4294967328'), "hidden_size"),
    ("config.json", lambda data: data.replace(b'"hidden_size":32', b'"hidden_size":64'), "hidden_size"),
    ("tokenizer.json", lambda data: data[:len(data) // 2], "tokenizer.json"),
    ("tokenizer.json", lambda data: b"[]", "tokenizer.json"),
    ("model.safetensors", lambda data: data[:-100], "model.safetensors"),
    ("model.safetensors", lambda data: b"", "model.safetensors"),
    ("model.safetensors", None, "safetensors"),
    ("config.json", None, "config.json"),
    ("tokenizer.json", None, "tokenizer.json"),
])
def test_damaged_folders_are_refused(tmp_path, name, damage, word):
    copy_control(tmp_path)
    file = tmp_path / name
    if damage is None:
        file.unlink()
    else:
        damaged = damage(file.read_bytes())
        assert damaged != file.read_bytes()
        file.write_bytes(damaged)
    ended = run("serve", "--port", "0", "--model", tmp_path)
    assert ended.returncode == 1, ended
    assert word in ended.stderr or word == "hidden_size" and "[" in ended.stderr, ended.stderr


def test_a_file_that_is_cut_short_later_fails_only_what_needs_it(tmp_path):
    for file in TINY_MOE.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    with Daemon(tmp_path, "--no-preload-experts") as daemon:
        os.truncate(weights, weights.stat().st_size // 8)
        answer = daemon.post("/v1/completions", {"prompt": "ab", "max_tokens": 4})
        assert answer.status == 500, answer
        assert "could not be read" in answer.error["message"], answer
        assert daemon.get("/health").status == 200
        assert daemon.post("/tokenize", {"prompt": "ab"}).status == 200


def peak_memory(path):
    """Exit code and largest resident memory, in KiB, of `inspect`."""
    process = subprocess.Popen([PROGRAM, "inspect", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss


def test_no_model_costs_memory_by_what_it_announces():
    code, usual = peak_memory(FAULTS / "control-gguf.gguf")
    assert code == 0
    for path in malformed():
        code, peak = peak_memory(path)
        assert code == 1, path
        assert peak < usual + (16 << 10), path
