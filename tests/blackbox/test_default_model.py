"""The model that ./run serves says sensible things, and what README and docs tell a reader to type works."""

import pathlib
import re
import subprocess

import pytest

from daemon import REPOSITORY, run

DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def test_it_knows_the_capital_of_france(default_model):
    answer = default_model.complete(prompt="The capital of France is", max_tokens=16)
    assert "Paris" in answer["choices"][0]["text"]


def test_it_chats(default_model):
    answer = default_model.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}],
        "max_tokens": 40, "temperature": 0}).json()
    [choice] = answer["choices"]
    assert "Paris" in choice["message"]["content"]
    assert choice["finish_reason"] == "stop"


def test_it_is_a_mixture_of_experts(default_model):
    default_model.complete(prompt="One two three", max_tokens=32, ignore_eos=True)
    layers = default_model.get("/v1/experts").json()["layers"]
    assert len(layers) == 30
    for layer in layers:
        assert len(layer["experts"]) == 8
        assert sum(expert["tokens"] > 0 for expert in layer["experts"]) >= 2


def test_long_prompts_are_understood(default_model):
    filler = "The grass is green. The sky is blue. The sun is yellow. " * 40
    text = default_model.text(prompt=filler + "The grass is", max_tokens=4)
    assert "green" in text


def test_a_scored_prompt_is_likelier_in_order(default_model):
    def score(prompt):
        [choice] = default_model.complete(prompt=prompt, max_tokens=0, echo=True, logprobs=0)["choices"]
        return sum(choice["logprobs"]["token_logprobs"][1:])
    assert score("The cat sat on the mat.") > score("Mat the on sat cat the.")


def curl_commands():
    """The commands of ```sh blocks that call curl, with the place each was found at."""
    found = []
    for document in DOCUMENTS:
        for block in re.findall(r"^```sh\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL):
            for command in re.split(r"\n(?=\S)", block.replace("\\\n", " ")):
                if command.startswith("curl "):
                    found.append(pytest.param(command.strip(), id=f"{document.name}-{len(found)}"))
    return found


@pytest.mark.parametrize("command", curl_commands())
def test_the_documents_curl_commands_work(default_model, command):
    assert "http://127.0.0.1:8000" in command
    ended = subprocess.run(["bash", "-c", command.replace("http://127.0.0.1:8000", default_model.url) + " --fail --max-time 60"],
                           capture_output=True, text=True)
    assert ended.returncode == 0, ended
    assert ended.stdout.strip()


def test_the_documents_name_files_that_exist():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_documents_configuration_example_is_sound(tmp_path):
    text = (REPOSITORY / "docs/configuration.md").read_text()
    for index, example in enumerate(re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
        file = pathlib.Path(tmp_path) / f"{index}.yaml"
        file.write_text(example)
        assert run("check-config", file).returncode == 0
