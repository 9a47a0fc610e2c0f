"""Options of engines on our command line, and whole commands of theirs."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.programs import number, programs, read_command

MODEL = "Qwen/Qwen3-8B"
RULES = rules_for(mode="serving")


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def call(*words: str) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = guarded(lambda: run(words))
    return Outcome(status, out.getvalue(), err.getvalue())


def flags_of(*words: str, status: int | None = None) -> dict[str, Any]:
    outcome = call("infer", *words, "--gpu", "h100", "--json")
    assert status is None or outcome.status == status
    found: dict[str, Any] = json.loads(outcome.out)["serving"]
    return found


COMMANDS = {
    "vllm serve Qwen/Qwen3-8B --max-model-len 32k --gpu-memory-utilization 0.95 -tp 2 "
    "--kv-cache-dtype=fp8 --port 8000 --enforce-eager": {
        "engine": "vllm", "seq_len": 32_000, "memory_fraction": 0.95, "tensor_parallel": 2,
        "kv_dtype": "fp8", "eager": True,
    },
    "CUDA_VISIBLE_DEVICES=0 python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B "
    "--max-num-seqs 64 --dtype half --disable-hybrid-kv-cache-manager": {
        "engine": "vllm", "max_num_seqs": 64, "precision": "fp16", "window_cache": False,
    },
    "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-8B "
    "--max-model-len 8K": {"engine": "vllm", "seq_len": 8192, "engine_version": "0.11.0"},
    "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 16384 --tp 4 "
    "--mem-fraction-static 0.85 --chunked-prefill-size 4096": {
        "engine": "sglang", "seq_len": 16_384, "tensor_parallel": 4, "memory_fraction": 0.85,
        "chunk": 4096,
    },
    "./build/bin/llama-server -m Qwen/Qwen3-8B -c 32768 -np 4 -ngl 20 -ctk q8_0 -ctv q4_0 -fa on": {
        "engine": "llama.cpp", "seq_len": 8192, "num_concurrent": 4, "gpu_layers": 20,
        "kv_dtype": "q8_0", "v_dtype": "q4_0", "flash_attention": True,
    },
    "llama-server -hf Qwen/Qwen3-8B -fa -ub 256 --swa-full -fa off": {
        "engine": "llama.cpp", "chunk": 256, "window_cache": False, "flash_attention": False,
    },
    "OLLAMA_CONTEXT_LENGTH=16384 OLLAMA_KV_CACHE_TYPE=q8_0 ollama run Qwen/Qwen3-8B": {
        "engine": "ollama", "seq_len": 16_384, "kv_dtype": "q8_0",
    },
    "text-generation-launcher --model-id Qwen/Qwen3-8B --max-total-tokens 4096 --num-shard 2": {
        "engine": "tgi", "seq_len": 4096, "tensor_parallel": 2,
    },
    "trtllm-serve Qwen/Qwen3-8B --tp_size 2 --max_seq_len 8192 --max_batch_size 32 "
    "--kv_cache_free_gpu_memory_fraction 0.8": {
        "engine": "tensorrt-llm", "seq_len": 8192, "tensor_parallel": 2, "max_num_seqs": 32,
        "memory_fraction": 0.8,
    },
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_people_have(command: str) -> None:
    wanted = COMMANDS[command]
    found = flags_of("--from-command", command)
    assert {name: found[name] for name in wanted} == wanted


def test_a_command_and_the_same_options_agree() -> None:
    words = ["--max-model-len", "32768", "--gpu-memory-utilization", "0.8", "-tp", "2"]
    one = call("infer", "--from-command", f"vllm serve {MODEL} {' '.join(words)}", "--json")
    other = call("infer", MODEL, "--engine", "vllm", *words, "--json")
    first = call("infer", *words, "--engine=vllm", MODEL, "--json")
    assert one.out == other.out == first.out and one.status == other.status


def test_what_is_typed_beside_a_command_wins() -> None:
    command = f"vllm serve {MODEL} --max-model-len 32768"
    assert flags_of("--from-command", command, "--seq-len", "1024")["seq_len"] == 1024
    assert flags_of("--from-command", command, "--max-model-len", "2048")["seq_len"] == 2048
    assert flags_of(MODEL, "--from-command", "vllm serve other/model")["engine"] == "vllm"


def test_what_is_not_priced_is_said_and_never_safe() -> None:
    command = f"vllm serve {MODEL} --speculative-config {{}} --some-new-thing 7"
    outcome = call("infer", "--from-command", command, "--gpu", "h100", "--json")
    data = json.loads(outcome.out)
    assert (outcome.status, data["verdict"]["status"]) == (1, "uncertain")
    told = " ".join(data["warnings"])
    assert "--speculative-config of vllm is not priced (drafts without a model" in told
    assert "--some-new-thing: not known here" in told


WRONG = {
    ("--max-model-len", "8192"): "--max-model-len is an option of vllm: add --engine vllm",
    ("--engine", "vllm", "--max-modellen", "8192"): "Did you mean --max-model-len?",
    ("--engine", "vllm", "--kv-cache-dtype", "fp7"): "--kv-cache-dtype fp7 is not modelled",
    ("--engine", "vllm", "--gpu-memory-utilization", "1.5"): "--gpu-memory-utilization has to be",
    ("--engine", "vllm", "--max-model-len", "many"): "--max-model-len has to be a whole number",
    ("--engine", "vllm", "--max-model-len"): "--max-model-len needs a value",
    ("--engine", "vlm"): "Did you mean `vllm`?",
    ("--engine", "vllm", "--cpu-offload-gb", "4"): "the host are not modelled",
    ("--engine", "llama.cpp", "-nkvo"): "a cache on the host is not modelled",
    ("--engine", "vllm", "-ngl", "4"): "-ngl is an option of llama.cpp",
    ("--from-command", "ls -l"): "is no command of an engine that is known here",
    ("--from-command", "vllm serve 'x"): "The command cannot be read",
    ("--engine-version", "new"): "--engine-version new is not a version",
    ("--engine", "vllm", "--context-parallel", "2"): "Raise --tensor-parallel",
    ("--context-parallel", "2"): "is not in hf-transformers",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_options_are_met_with_words(words: tuple[str, ...]) -> None:
    outcome = call("infer", MODEL, *words)
    assert outcome.status == 2 and WRONG[words] in outcome.err
    assert "Traceback" not in outcome.err and not outcome.out


def test_a_command_without_a_model() -> None:
    outcome = call("infer", "--from-command", "vllm serve --max-model-len 8192")
    assert outcome.status == 2 and "MODEL is missing" in outcome.err


def test_an_undescribed_version_is_told() -> None:
    outcome = call("infer", MODEL, "--engine", "vllm", "--engine-version", "0.99", "--gpu", "h100")
    assert "no file describes vllm in version 0.99" in outcome.err
    known = call("infer", MODEL, "--engine", "vllm", "--engine-version", "0.25", "--gpu", "h100")
    assert "no file describes" not in known.err


@pytest.mark.parametrize(
    ("typed", "meant"), [("b9000", "9000"), ("v0.25", "0.25"), ("9000", "9000")]
)
def test_versions_as_they_are_tagged(typed: str, meant: str) -> None:
    found = flags_of(MODEL, "--engine", "llama.cpp", "--engine-version", typed)
    assert found["engine_version"] == meant


def test_a_command_without_a_length_is_never_safe() -> None:
    for command in (f"vllm serve {MODEL}", f"vllm serve {MODEL} --max-model-len auto"):
        outcome = call("infer", "--from-command", command, "--gpu", "h100", "--json")
        data = json.loads(outcome.out)
        assert data["verdict"]["status"] == "uncertain"
        assert any("gives no --max-model-len" in text for text in data["warnings"])
    said = call("infer", "--from-command", f"vllm serve {MODEL}", "--seq-len", "4096", "--json")
    assert "gives no" not in said.out


def test_slots_of_llama_server() -> None:
    four = flags_of("--from-command", f"llama-server -m {MODEL} -c 32768")
    assert (four["num_concurrent"], four["seq_len"], four["shared_cells"]) == (4, 8192, True)
    own = flags_of("--from-command", f"llama-server -m {MODEL} -c 32768 -np 2")
    assert (own["num_concurrent"], own["seq_len"], own["shared_cells"]) == (2, 16_384, False)
    env = flags_of("--from-command", f"LLAMA_ARG_CTX_SIZE=4096 llama-server -m {MODEL} -np 1")
    assert env["seq_len"] == 4096
    hub = flags_of("--from-command", f"llama-server -hf {MODEL}:Q4_K_M -c 4096 -np 1")
    assert hub["quantization"] == "Q4_K_M"


@pytest.mark.parametrize(
    "after", ["; rm -rf x", "&& echo --max-model-len 1", "| tee log", "> log 2>&1"]
)
def test_only_the_first_command_of_a_line_is_read(after: str) -> None:
    found = flags_of("--from-command", f"vllm serve {MODEL} --max-model-len 4096 {after}")
    assert found["seq_len"] == 4096


def test_lines_that_go_on_and_words_that_mean_nothing() -> None:
    for command in (
        f"vllm serve {MODEL} \\ --max-model-len 4096",
        f"vllm serve {MODEL} \\\n --max-model-len 4096",
    ):
        assert flags_of("--from-command", command)["seq_len"] == 4096
    outcome = call("infer", "--from-command", f"vllm serve {MODEL} --max-model-len 4096 8192")
    assert "8192: not known here" in outcome.err and outcome.status == 1


def test_switches_with_a_value() -> None:
    command = f"vllm serve {MODEL} --max-model-len 4096 --enforce-eager"
    assert flags_of("--from-command", f"{command}=False")["eager"] is False
    assert flags_of("--from-command", f"{command}=true")["eager"] is True
    outcome = call("infer", "--from-command", f"{command}=perhaps")
    assert outcome.status == 2 and "it takes no value but true or false" in outcome.err


def test_what_a_model_or_card_cannot_do_is_never_safe() -> None:
    long = call("infer", "meta-llama/Llama-3.1-8B", "--seq-len", "100000", "--gpu", "5090")
    assert long.status == 1 and "passes the model at once" in long.err
    beyond = call("infer", "gpt2", "--seq-len", "100000", "--gpu", "h100")
    assert "made for 1,024 positions" in beyond.err
    gguf = call("infer", "meta-llama/Llama-3.1-8B", "--quant", "Q4_K_M", "--gpu", "3060-12")
    assert gguf.status == 1 and "transformers unpacks a GGUF file" in gguf.err
    heads = call("infer", MODEL, "--engine", "vllm", "-tp", "3", "--gpu", "h100")
    assert heads.status == 1 and "cannot share the 32 query heads" in heads.err
    stages = call("infer", MODEL, "--engine", "vllm", "-pp", "40", "--gpu", "h100")
    assert stages.status == 2 and "has no layer for some of them" in stages.err
    latent = call("infer", MODEL, "--engine", "vllm", "--kv-dtype", "fp8_ds_mla")
    assert latent.status == 2 and "is a layout of latents" in latent.err
    values = call("infer", MODEL, "--engine", "llama.cpp", "-ctk", "q8_0", "-fa", "off")
    assert values.status == 2 and "caches values in 16 bits only" in values.err


def test_a_draft_model_takes_its_weights_and_caches() -> None:
    words = ("--seq-len", "4096", "--concurrent", "8", "--gpu", "h100", "--engine-version", "0.25")
    small = json.loads(call("infer", "Qwen/Qwen3-0.6B", "--engine", "vllm", *words, "--json").out)
    wanted = small["memory_bytes"]["weights"] + small["memory_bytes"]["kv_cache"]
    command = f"""vllm serve {MODEL} --speculative-config '{{"model": "Qwen/Qwen3-0.6B"}}'"""
    found = json.loads(call("infer", "--from-command", command, *words, "--json").out)
    assert found["memory_bytes"]["draft"] == wanted
    alone = json.loads(call("infer", MODEL, "--engine", "vllm", *words, "--json").out)
    more = found["memory_bytes"]["total"] - alone["memory_bytes"]["total"]
    assert more == wanted and alone["memory_bytes"]["draft"] == 0
    longest = found["verdict"]["max_context"]
    assert 0 < longest < alone["verdict"]["max_context"]
    wrong = call("infer", MODEL, "--draft-model", "no/such-model", "--source", "catalogue")
    assert wrong.status == 2 and "Traceback" not in wrong.err
    text = call("infer", MODEL, "--engine", "vllm", "--speculative-config", "ngram")
    assert text.status == 2 and "takes a JSON object" in text.err


def test_room_for_the_adapters_of_experts() -> None:
    words = ("--max-loras", "4", "--max-lora-rank", "64", "--gpu", "h100", "--json")
    moe = json.loads(call("infer", "Qwen/Qwen3-30B-A3B", "--engine", "vllm", *words).out)
    experts = 48 * 128 * 3 * (2048 + 768) * 64 * 4 * 2
    assert moe["memory_bytes"]["lora_slots"] >= experts


def test_every_option_leads_somewhere() -> None:
    for _, _, profile in programs(RULES):
        for name, spec in profile.options.items():
            assert (name.startswith("-") or name.isupper()) and spec, (profile.id, name)
            if "same_as" in spec:
                assert spec["same_as"] in profile.options, (profile.id, name)
            if "flag" in spec:
                assert spec["flag"] in RULES.flags.flags, (profile.id, name)


OWN = """\
id: mine
title: Mine
status: stable
extends: vllm
matches: {engine: mine}
commands: [mine run]
options:
  --window: {flag: seq_len}
  -w: {same_as: --window}
"""


def test_an_engine_is_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "profiles" / "engines" / "serving"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(OWN, encoding="utf-8")
    rules = ("--rules", str(tmp_path), "--gpu", "h100", "--json")
    outcome = call("infer", "--from-command", f"mine run {MODEL} -w 4096", *rules)
    data = json.loads(outcome.out)
    assert (data["serving"]["engine"], data["serving"]["seq_len"]) == ("mine", 4096)
    assert data["verdict"]["status"] == "uncertain"  # changed rules are never safe
    for wrong in ("-w: {same_as: -w}", "-w: {same_as: --windo}", "-w: {flag: seq_lenn}"):
        broken = OWN.replace("-w: {same_as: --window}", wrong)
        (folder / "mine.yaml").write_text(broken, encoding="utf-8")
        outcome = call("infer", MODEL, "--engine", "mine", *rules)
        assert outcome.status == 2 and "leads to no flag that exists" in outcome.err


def test_suffixes() -> None:
    sizes = {"k": 1000, "K": 1024}
    assert [number(t, sizes) for t in ("32k", "32K", "1.5k", "7")] == [32_000, 32_768, 1500, 7]
    assert number("many", sizes) == "many"


def test_from_python() -> None:
    engine, typed = read_command(RULES, f"vllm serve {MODEL} -tp 2 \\\n --port 1")
    assert (engine, typed.model, typed.flags) == (
        "vllm", MODEL, {"engine": "vllm", "tensor_parallel": 2},
    )  # fmt: skip
    with pytest.raises(InputProblem):
        read_command(RULES, "")
