"""Every --json output against its published schema, and what a schema may not lose."""

from __future__ import annotations

import copy
import json
import shlex
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run
from fitcheck.engine.machine import choosing, tools

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "docs/json-schema"
CASES = ROOT / "tests/importers"
ALL_CASES = shlex.join(
    sorted(
        str(path)
        for path in CASES.glob("*/*")
        if path.suffix in {".yml", ".yaml", ".json", ".sh"} and ".expected" not in path.name
    )
)
PROMISED = ROOT / "tests/golden/json_required.yaml"
LIST = "derivation"  # a list, so no key names its schema
LLAMA = "meta-llama/Llama-3.1-8B"
RUNS = {
    "estimate": [
        f"{LLAMA} --qlora --lora-r 64 --batch-size 4 --flash-attn --gpu 4090",
        f"{LLAMA} --qlora --explain --verbose",
        f"{LLAMA} --no-lora --gpu h200",
        "Qwen/Qwen2.5-7B --gpu t4 --precision fp16 --quant nf4 --grad-checkpoint --seq-len 1024",
        "meta-llama/Llama-3.1-70B --qlora --gpu 3060-12",
        "bigcode/starcoder2-7b --quant int8 --gpu mi300x",
        "Qwen/Qwen2.5-VL-7B-Instruct --qlora --images 1 --seq-len 4096 --vram-mib 20000",
        "google/gemma-3-4b-it --qlora --gpu gb300",
    ],
    "infer": [
        f"infer {LLAMA} --fit",
        f"infer {LLAMA} --engine vllm --engine-version 0.25 --tensor-parallel-size 2 --gpu l40s",
        "infer Qwen/Qwen3-8B --concurrent 16 --explain --verbose --gpu t4",
        f"infer {LLAMA} --engine llama.cpp --quant Q4_K_M --gpu 3060-12",
        "infer google/gemma-3-27b-it --engine sglang --gpu h100 --pipeline-parallel-size 2",
        "infer state-spaces/mamba-2.8b-hf --vram-mib 9000",
        f"infer {LLAMA} --seq-len 65536 --concurrent 32 --gpu t4",
    ],
    "advise": [
        f"advise {LLAMA} --qlora --flash-attn --gpu 4090 --seq-lens 512,8192",
        f"advise {LLAMA} --qlora --gpu t4 --seq-lens 8192",
        "advise Qwen/Qwen2.5-7B --seq-lens 1024 --sweep quant=none,nf4 --sweep gpu=t4,4090",
        "advise Qwen/Qwen2.5-7B --seq-lens 1024 --double-quant --sweep quant=none,nf4",
    ],
    "compare": [
        f"compare {LLAMA} 4090 t4 gb300 --qlora",
        "compare Qwen/Qwen3-8B l4 --infer --engine vllm --seq-len 8192 --vram-mib 12000",
        "compare state-spaces/mamba-2.8b-hf 4090 t4 --qlora",
    ],
    "optimize": [
        f"optimize {LLAMA} --qlora --batch-size 4 --gpu 4090",
        "optimize Qwen/Qwen3-8B --infer --seq-len 32768 --concurrent 8 --gpu l4",
        "optimize meta-llama/Llama-3.1-70B --gpu 3060-12",
        f"optimize {LLAMA} --gpu t4",
        f"optimize {LLAMA} --no-lora --gpu h100",
        f"optimize {LLAMA} --infer --engine vllm --gpu l4 --concurrent 8 --seq-len 16384",
    ],
    "check": [
        f"check {CASES}/axolotl/qlora.yml {CASES}/torchtune/lora.yaml --gpu h100",
        f"check {CASES}/deepspeed/zero2.json {CASES}/trl/launch.sh --gpu t4",
        f"check {ALL_CASES} --gpu t4",
        f"check {CASES}/nothing-here.yml --gpu t4",
    ],
    "model": ["models show Qwen/Qwen3-30B-A3B", "models show google/gemma-3-4b-it"],
    "models": ["models list llama 70b", "models list nothinghere"],
    "gpus": ["--list-gpus"],
    "rules-list": ["rules list"],
    "rules-lint": ["rules lint"],
    "rules-why": ["rules why overhead Qwen/Qwen2.5-7B --gpu t4"],
    "rules-codes": ["rules explain"],
    "rules-code": ["rules explain F201"],
    "rules-prove": ["rules prove"],
    "rules-test": ["rules test"],
    "rules-diff": [],  # these two need a folder and a tool; each has a test of its own
    "machine": [],
}
LINES = [(kind, line) for kind, lines in RUNS.items() for line in lines]


@lru_cache(maxsize=64)
def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{kind}-1.json").read_text(encoding="utf-8"))
    return found


def strict(node: Any) -> Any:
    """The schema with keys that it does not name refused, but where keys are data."""
    if isinstance(node, list):
        return [strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {key: strict(value) for key, value in node.items()}
    if isinstance(found.get("properties"), dict) and found.get("type") not in (None, "string"):
        found.setdefault("additionalProperties", False)
    return found


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> Any:
    guarded(lambda: run([*shlex.split(line), "--json"]))
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("kind", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_an_output_is_what_its_schema_says(
    kind: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(line, capsys)
    conforms(kind, found)
    if kind == "check":
        for file in found["files"]:
            if file["estimate"] is not None:
                Draft202012Validator(strict(schema("estimate"))).validate(file["estimate"])


def conforms(kind: str, found: Any) -> None:
    assert found["schema"] == f"fitcheck-{kind}-1"
    Draft202012Validator(schema(kind)).validate(found)
    Draft202012Validator(strict(schema(kind))).validate(found)  # what it does not name is drift


@pytest.mark.parametrize("refused", [False, True])
def test_a_diff_is_what_its_schema_says(
    refused: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guarded(lambda: run(["rules", "eject", str(tmp_path), "overhead/default", "gradients"]))
    capsys.readouterr()
    profile = tmp_path / "profiles/overhead/default.yaml"
    text = profile.read_text(encoding="utf-8")
    assert "value: 500 MiB" in text
    profile.write_text(text.replace("value: 500 MiB", "value: 600 MiB"), encoding="utf-8")
    if refused:
        with (tmp_path / "formulas/gradients.yaml").open("a", encoding="utf-8") as file:
            file.write(
                "limits:\n  - {id: no-full, level: refuse, direction: unknown, when: not lora, "
                "says: full fine-tuning is not modelled here}\n"
            )
    found = printed(f"rules diff {shlex.quote(str(tmp_path))}", capsys)
    assert any(one["moves"] for one in found["configurations"])
    conforms("rules-diff", found)


@pytest.mark.skipif(sys.platform == "win32", reason="the tool is a shell script")
@pytest.mark.parametrize("said", ["4090_two.xml", "unknown_card.xml", "3060_laptop_wddm.xml"])
def test_this_machine_is_what_its_schemas_say(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "nvidia-smi"
    file = shlex.quote(str(ROOT / "tests/machines" / said))
    tool.write_text(f'#!/bin/sh\n[ "$1" = -q ] && exec /bin/cat {file}\nexit 1\n', encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "PLACES", ())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    choosing._last.clear()
    try:
        found = printed("--gpu auto --list-gpus", capsys)
        assert found["gpus"]
        conforms("machine", found)
        conforms("estimate", printed(f"{LLAMA} --qlora --gpu auto", capsys))
        conforms("compare", printed(f"compare {LLAMA} auto t4 --qlora", capsys))
    finally:
        choosing._last.clear()


@pytest.mark.parametrize(
    "line",
    [
        f"{LLAMA} --qlora --derive",
        "Qwen/Qwen2.5-7B --gpu t4 --derive max_seq_len",
        "infer Qwen/Qwen3-8B --engine vllm --derive",
        "google/gemma-3-4b-it --no-lora --gpu mi300x --derive total",
    ],
)
def test_a_derivation_is_a_list_of_steps(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(line, capsys)
    Draft202012Validator(schema(LIST)).validate(found)
    Draft202012Validator(strict(schema(LIST))).validate(found)
    with pytest.raises(ValidationError):
        Draft202012Validator(schema(LIST)).validate([{**found[0], "value": {}}])
    with pytest.raises(ValidationError):
        Draft202012Validator(schema(LIST)).validate(found[0])


def test_every_schema_is_one_and_has_its_name() -> None:
    kinds = {path.name.removesuffix("-1.json") for path in SCHEMAS.glob("*.json")} - {LIST}
    assert kinds == RUNS.keys()
    for kind in kinds:
        Draft202012Validator.check_schema(schema(kind))
        assert schema(kind)["properties"]["schema"]["const"] == f"fitcheck-{kind}-1"
        assert "schema" in schema(kind)["required"] and schema(kind)["title"]


def test_a_missing_key_and_a_wrong_type_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    found, validator = (
        printed(RUNS["estimate"][0], capsys),
        Draft202012Validator(schema("estimate")),
    )
    for key in ("verdict", "memory_mib", "warnings", "schema"):
        with pytest.raises(ValidationError):
            validator.validate({k: v for k, v in found.items() if k != key})
    for path, value in (
        (("verdict", "fits"), "yes"),
        (("verdict", "status"), "maybe"),
        (("memory_mib", "total"), "30607"),
        (("memory_bytes", "total"), 1.5),
        (("schema",), "fitcheck-estimate-2"),
    ):
        wrong = copy.deepcopy(found)
        place = wrong
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        with pytest.raises(ValidationError):
            validator.validate(wrong)
    validator.validate({**found, "a_key_of_a_later_release": 1})  # keys may be added


def required(node: Any, path: str = "") -> Iterator[str]:
    """Every key that is promised, dotted."""
    if isinstance(node, dict):
        for key in node.get("required", ()):
            yield f"{path}{key}"
        for key in node.get("else", {}).get("required", ()):  # of all but the case named by `if`
            yield f"{path}{key}"
        for key, value in node.get("properties", {}).items():
            yield from required(value, f"{path}{key}.")
        yield from required(node.get("items"), path)


@pytest.mark.parametrize("kind", sorted(RUNS))
def test_nothing_that_was_promised_is_taken_back(kind: str) -> None:
    promised = yaml.safe_load(PROMISED.read_text(encoding="utf-8"))
    assert promised.keys() == RUNS.keys()
    assert {*promised[kind]} <= {*required(schema(kind))}


def test_what_could_not_be_run_prints_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (f"{LLAMA} --gpu nope", "advise x --seq-lens 1", f"compare {LLAMA} nope"):
        assert (
            guarded(lambda line=line: run([*shlex.split(line), "--json", "--source", "local"])) == 2
        )
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("error:")
