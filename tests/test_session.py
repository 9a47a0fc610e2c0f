"""The session: every rule of specification section 3.5 mode B, scripted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fitcheck.cli.session import completing
from fitcheck.cli.session.commands import ALIASES, perform, table
from fitcheck.cli.session.running import LEFT_OUT, command, inside
from fitcheck.cli.session.state import TRAINING, State
from fitcheck.engine import sources
from fitcheck.engine.api import estimate

LLAMA = "meta-llama/Llama-3.1-8B"
SERVING = "serving"


class Script:
    """A session in this process; `run` returns what a line prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.state, self.capsys = State(), capsys

    def run(self, *lines: str) -> tuple[str, str]:
        self.capsys.readouterr()
        for line in lines:
            perform(self.state, line)
        out, err = self.capsys.readouterr()
        return out, err

    def ready(self) -> Script:
        self.run(f"model {LLAMA}", "gpu 4090")
        return self


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> Script:
    return Script(capsys)


def total(text: str) -> float:
    found: float = json.loads(text)["memory_mib"]["total"]
    return found


# commands and aliases


def test_every_command_and_alias_of_the_specification_is_there() -> None:
    known = table(State())
    wanted = "model gpu memory infer advise explain optimize compare show reset gpus help exit"
    assert set(wanted.split()) <= known.keys()
    assert {"derive", "rules", "save", "load"} <= known.keys()
    of = {"mem": "memory", "serve": "infer", "inference": "infer", "kv": "infer", "sweep": "advise"}
    of |= {"q": "exit", "quit": "exit", "?": "help", "h": "help", "config": "show"}
    assert of.items() <= ALIASES.items() and ALIASES["list-gpus"] == "gpus"
    assert set(ALIASES.values()) <= known.keys()


@pytest.mark.parametrize("name", ["memory", "infer", "advise", "compare", "optimize"])
def test_options_are_those_of_the_one_liner(name: str) -> None:
    theirs = {o for p in command(State(), name).params for o in p.opts if p.name not in LEFT_OUT}
    made = inside(State(), name)
    ctx = made.make_context(name, [], resilient_parsing=True)
    assert {o for p in made.get_params(ctx) for o in p.opts} - {"-h", "--help"} == theirs


def test_help_lists_commands_and_the_options_of_one(script: Script) -> None:
    out, _ = script.run("help")
    assert all(name in out for name in table(script.state)) and "also mem" in out
    out, _ = script.run("help mem")
    assert out.startswith("Usage: memory [OPTIONS]") and "--lora-r" in out
    assert "--list-gpus" not in out and "--no-color" not in out
    assert script.run("help nope")[1].startswith("error: There is no command `nope`")


# what is missing, and what is wrong


def test_model_and_card_are_needed_and_what_was_typed_is_kept(script: Script) -> None:
    _, err = script.run("memory --qlora")
    assert "Run `model NAME` and `gpu NAME` first" in err
    _, err = script.run("gpu 4090", "memory")
    assert "Run `model NAME` first" in err
    script.run(f"model {LLAMA}")
    assert "differs: --qlora" in script.run("memory")[0]


def test_a_card_for_one_line_is_enough_and_does_not_move_the_session(script: Script) -> None:
    script.run(f"model {LLAMA}")
    assert json.loads(script.run("memory --gpu h100 --json")[0])["gpu"]["key"] == "h100"
    assert script.state.gpu is None
    script.run("gpu 4090", "memory --gpu h100")
    assert json.loads(script.run("memory --json")[0])["gpu"]["key"] == "4090"
    memory = json.loads(script.run("memory --vram-mib 16000 --json")[0])["gpu"]["vram_mib"]
    assert memory == 16000


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "There is no command `nonsense`"),
        ("memry", "Did you mean `memory`"),
        (LLAMA, f"`model {LLAMA}`"),
        ("--qlora", "`memory --qlora`"),
        ("gpu 4091", "Unknown GPU"),
        ("gpu", "Write `gpu NAME`"),
        ("model", "Write `model NAME`"),
        ("memory 'open", "No closing quotation"),
        ("memory --lora-r x", "has to be a whole number"),
        ("memory --nope", "No such option"),
        ("memory --version", "No such option"),
        (f"memory {LLAMA}", "The model is set by `model NAME`"),
        ("memory --flash-attn --no-flash-attn", "on one line"),
        ("memory --quant int8 --double-quant", "--double-quant"),
        ("memory --no-lora --lora-r 8", "--lora-r has no meaning"),
        ("compare", "No GPU is named"),
        ("advise", "`advise --seq-lens"),
        ("show more", "takes nothing"),
        ("load /nowhere/run.yaml", "there is no such file"),
        ("save", "Write `save FILE`"),
        ("rules nope", "nope"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(script: Script, line: str, says: str) -> None:
    script.ready().run("memory --qlora")
    before = (script.state.model, script.state.gpu, dict(script.state.of(TRAINING)))
    _, err = script.run(line)
    assert err.startswith("error:") and says in err and "Traceback" not in err
    assert (script.state.model, script.state.gpu, dict(script.state.of(TRAINING))) == before


def test_a_model_that_cannot_be_read_leaves_the_one_before(script: Script, tmp_path: Path) -> None:
    script.ready().run(f"model {tmp_path / 'missing.json'}")
    assert script.state.model == LLAMA


# flags are kept


def test_flags_are_kept_from_line_to_line(script: Script) -> None:
    script.ready().run("memory --qlora --lora-r 64 --batch-size 4 --seq-len 2048 --flash-attn")
    assert total(script.run("memory --json")[0]) == 30607.07
    assert total(script.run("memory --batch-size 2 --json")[0]) == 20039.87
    assert script.run("memory")[0].startswith(
        "differs: --qlora --lora-r 64 --batch-size 2 --flash-attn\n"
    )


def test_undo_flags_and_reset(script: Script) -> None:
    script.ready().run("memory --qlora --double-quant --flash-attn")
    script.run("memory --no-flash-attn --no-grad-checkpoint --no-double-quant")
    values = script.state.rules().flags.resolve(script.state.of(TRAINING)).values
    assert not (values["flash_attn"] or values["grad_checkpoint"] or values["double_quant"])
    script.run("infer --quant nf4 --double-quant", "advise --seq-lens 512", "reset")
    assert not any((script.state.flags, script.state.sweep, script.state.other))
    assert script.state.model == LLAMA and script.state.gpu == "4090"


@pytest.mark.parametrize("again", ["--lora-r 8", "--lora-targets q,v"])
def test_naming_a_rank_or_targets_brings_lora_back(script: Script, again: str) -> None:
    script.ready().run("memory --no-lora")
    out, err = script.run(f"memory {again} --json")
    assert json.loads(out)["training"]["lora_rank"] and "error" not in err


def test_a_quant_that_has_no_scales_clears_a_kept_double_quant(script: Script) -> None:
    script.ready().run("memory --quant nf4 --double-quant")
    out, err = script.run("memory --quant int8 --json")
    assert json.loads(out)["training"]["double_quant"] is False and "error" not in err
    script.run("infer --quant nf4 --double-quant")
    out, err = script.run("infer --quant none --json")
    assert json.loads(out)["serving"]["double_quant"] is False and "error" not in err


def test_a_shorthand_replaces_what_it_sets_and_a_later_flag_wins(script: Script) -> None:
    script.ready().run("memory --precision fp16 --quant int8", "memory --qlora")
    chosen = json.loads(script.run("memory --json")[0])["training"]
    assert (chosen["quantization"], chosen["precision"]) == ("nf4", "bf16")
    chosen = json.loads(script.run("memory --quant int8 --json")[0])["training"]
    assert (chosen["quantization"], chosen["grad_checkpoint"]) == ("int8", True)


def test_serving_has_flags_of_its_own(script: Script) -> None:
    script.ready().run("memory --seq-len 512 --precision bf16", "infer --seq-len 4096")
    assert json.loads(script.run("infer --json")[0])["serving"]["seq_len"] == 4096
    assert json.loads(script.run("infer --json")[0])["serving"]["precision"] == "fp16"
    assert json.loads(script.run("memory --json")[0])["training"]["seq_len"] == 512


def test_options_of_an_engine_are_kept_with_the_engine(script: Script) -> None:
    script.ready().run("infer --seq-len 1024 --engine vllm --engine-version 0.25")
    script.run("infer --max-model-len 8192")
    assert json.loads(script.run("infer --json")[0])["serving"]["seq_len"] == 8192
    script.run("infer --engine hf-transformers")
    assert json.loads(script.run("infer --json")[0])["serving"]["seq_len"] == 2048


def test_the_advisor_shares_training_and_remembers_its_ranges(script: Script) -> None:
    script.ready().run("memory --qlora --lora-r 64 --batch-size 4 --grad-accum 8 --flash-attn")
    out, _ = script.run("advise --seq-lens 512,1024,2048,4096,8192 --json")
    found = json.loads(out)
    assert (found["grid_size"], found["fitting_count"]) == (150, 60)
    assert found["recommended"]["total_mib"] == 22535.87
    assert json.loads(script.run("sweep --json")[0]) == found
    script.run("advise --optimizer sgd")
    assert json.loads(script.run("memory --json")[0])["training"]["optimizer"] == "sgd"
    assert "--seq-lens 512,1024,2048,4096,8192" in script.run("show")[0]
    _, err = script.run("memory --no-lora --quant none", "advise")
    assert "--no-lora has no place here" in err


def test_explain_derive_and_compare_compute_what_is_not_there_yet(script: Script) -> None:
    script.ready()
    assert "Largest component:" in script.run("explain")[0]
    assert script.run("derive lora")[0].startswith("LoRA adapter weights (lora)")
    assert script.run("derive kv_cache_per_request")[0].startswith("Cache")
    out, _ = script.run("compare t4 h100 --json")
    assert {c["key"] for c in json.loads(out)["cards"]} == {"t4", "h100"}
    out, _ = script.run("infer --seq-len 512", "compare t4 --infer --json")
    assert '"max_concurrent"' in out
    assert "would fit" in script.run("optimize")[0]


def test_show_has_both_sets_ranges_and_last_estimates(script: Script) -> None:
    out, _ = script.run("show")
    assert "not set: `model NAME`" in out and "no ranges set: `advise --seq-lens" in out
    script.ready().run("memory --qlora", "infer --concurrent 2")
    out, _ = script.run("state")
    assert "differs: --qlora" in out and "differs: --concurrent 2" in out
    assert "last      memory:" in out and "last      infer:" in out
    script.run("gpu h100")
    assert "last" not in script.run("show")[0]


def test_a_line_that_an_answer_printed_can_be_pasted(script: Script) -> None:
    out, _ = script.run(f"fitcheck {LLAMA} --qlora --gpu h100 --json")
    assert json.loads(out)["gpu"]["key"] == "h100"
    assert script.state.model is None


def test_the_same_model_is_read_once(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG}), encoding="utf-8")
    monkeypatch.setattr(sources, "kept", {})
    script.run(f"model {path}", "gpu 4090")
    before = total(script.run("memory --json")[0])
    path.write_text(json.dumps({**CONFIG, "num_hidden_layers": 2}), encoding="utf-8")
    assert total(script.run("memory --json")[0]) == before
    script.run(f"model {path}")
    assert total(script.run("memory --json")[0]) < before


CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}


# saved runs


def test_save_and_load_are_the_same_run_and_config_reads_it(script: Script, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    script.ready().run("memory --qlora --lora-r 64 --lora-targets full --no-flash-attn")
    script.run("infer --seq-len 8192 --kv-cache-dtype fp8 --engine vllm", "advise --seq-lens 512")
    script.run("gpu 4090 --vram-mib 20000")
    memory, serving = script.run("memory --json")[0], script.run("infer --json")[0]
    assert "saved to" in script.run(f"save {path}")[0]
    other = Script(script.capsys)
    other.run(f"load {path}")
    assert other.run("memory --json")[0] == memory
    assert other.run("infer --json")[0] == serving
    assert other.state.sweep == {"seq_lens": "512"}
    assert ran("--config", str(path), "--json").stdout == memory
    assert ran("infer", "--config", str(path), "--json").stdout == serving
    assert json.loads(ran("advise", "--config", str(path), "--json").stdout)["grid_size"] == 30
    compared = ran("compare", "--config", str(path), "--gpu", "h100", "--json").stdout
    assert json.loads(compared)["cards"][0]["key"] == "h100"
    assert "error" not in ran("optimize", "--config", str(path)).stderr


def test_saving_does_not_lose_another_file(script: Script, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("my notes\n", encoding="utf-8")
    assert "--force" in script.ready().run(f"save {path}")[1]
    assert path.read_text(encoding="utf-8") == "my notes\n"
    script.run(f"save {path} --force")
    assert path.read_text(encoding="utf-8").startswith("# A saved run")
    script.run("memory --qlora", f"save {path}")  # its own file it may write again
    assert "qlora: true" in path.read_text(encoding="utf-8")


def test_options_of_an_engine_are_saved_as_flags_or_not_at_all(
    script: Script, tmp_path: Path
) -> None:
    path = tmp_path / "run.yaml"
    script.ready().run("infer --engine vllm --max-model-len 4096", f"save {path}")
    assert "seq_len: 4096" in path.read_text(encoding="utf-8")
    script.run("infer --compilation-config 3")
    _, err = script.run(f"save {tmp_path / 'other.yaml'}")
    assert err.startswith("error:") and not (tmp_path / "other.yaml").exists()


def test_what_is_typed_wins_over_a_saved_run(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        f"fitcheck: 1\nmodel: {LLAMA}\ngpu: t4\nvram_mib: 9000\n"
        "training: {quant: nf4, double_quant: true, no_lora: false, lora_r: 64}\n",
        encoding="utf-8",
    )
    found = json.loads(
        ran("--config", str(path), "--gpu", "h100", "--quant", "int8", "--json").stdout
    )
    assert found["gpu"]["key"] == "h100" and found["gpu"]["vram_mib"] > 80000
    assert found["training"]["double_quant"] is False and found["training"]["lora_rank"] == 64
    assert ran("Qwen/Qwen2.5-7B", "--config", str(path), "--json").stdout.count("Qwen2.5-7B")


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("fitcheck: 1\ntraining:\n  lora_rr: 8\n", ":3:3", "Did you mean `lora_r`"),
        ("fitcheck: 1\ntraining:\n  lora_r: many\n", ":3:11", "has to be a whole number"),
        ("fitcheck: 1\ntraining: 8\n", ":2:11", "has to hold flags"),
        ("fitcheck: 2\n", ":1:11", "reads version 1"),
        ("fitcheck: 1\nmodle: x\n", ":2:1", "Did you mean `model`"),
        ("fitcheck: 1\nvram_mib: big\n", ":2:11", "whole number of MiB"),
        ("fitcheck: 1\ntraining: {quant: nf4, no_lora: true}\n", ":2:1", "not modelled"),
        ("fitcheck: 1\nmodel: [a\n", ":", "YAML"),
        ("base_model: x\n", "", "fitcheck check"),
    ],
)
def test_a_broken_saved_run_names_its_place(
    tmp_path: Path, text: str, place: str, says: str
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    done = ran("--config", str(path), LLAMA)
    assert done.returncode == 2 and f"run.yaml{place}" in done.stderr and says in done.stderr
    assert done.stdout == ""


# how it begins and ends


def ran(*words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fitcheck", *words],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", **environment},
        timeout=120,
    )


def test_a_pipe_is_a_session_that_ends_with_0() -> None:
    lines = f"# golden\n\nmodel {LLAMA}\nnonsense\ngpu 4090\nmemory --qlora --json\n"
    done = ran(stdin=lines)
    assert done.returncode == 0
    head, _, answer = done.stdout.partition("{")
    assert head.count("\n") == 2  # the model and the card
    assert json.loads("{" + answer)["verdict"]["status"] == "safe"
    assert done.stderr.count("error:") == 1 and "Traceback" not in done.stderr


def test_nothing_on_standard_input_ends_at_once_with_0() -> None:
    done = ran()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_lines_after_exit_are_not_read() -> None:
    assert "GeForce" not in ran(stdin="exit\ngpu 4090\n").stdout


def test_a_run_that_does_not_fit_does_not_change_the_exit_status() -> None:
    done = ran(stdin=f"model {LLAMA}\ngpu t4\nmemory\n")
    assert "DOES NOT FIT" in done.stdout and done.returncode == 0


def test_flags_without_a_model_begin_the_session() -> None:
    done = ran(
        "--qlora", "--lora-r", "64", stdin=f"model {LLAMA}\nmemory\ngpu 4090\nmemory --json\n"
    )
    assert "--qlora --lora-r 64" in done.stderr
    assert "Run `gpu NAME` first" in done.stderr  # the default card is none that was named
    assert json.loads(done.stdout[done.stdout.index("{") :])["training"]["lora_rank"] == 64
    done = ran("--gpu", "h100", stdin=f"model {LLAMA}\nmemory --json\n")
    assert json.loads(done.stdout[done.stdout.index("{") :])["gpu"]["key"] == "h100"
    assert "gpu       h100" in done.stderr


@pytest.mark.parametrize("option", ["--json", "--verbose", "--explain"])
def test_options_that_format_an_answer_need_a_model(option: str) -> None:
    done = ran(option)
    assert done.returncode == 2 and f"`memory {option}`" in done.stderr


@pytest.mark.parametrize(
    "words", [["--no-lora", "--quant", "nf4"], ["--lora-targets", "?"], ["--gpu", "4091"]]
)
def test_what_is_wrong_fails_before_the_session(words: list[str]) -> None:
    done = ran(*words, stdin="exit\n")
    assert done.returncode == 2 and done.stderr.startswith("error:")


def test_the_prompt_library_is_loaded_in_a_terminal_only() -> None:
    code = (
        "import sys; sys.argv = ['fitcheck']\n"
        "from fitcheck.cli.start import run\n"
        "assert run([]) == 0 and not any('prompt_toolkit' in name for name in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input="help\n", text=True, check=False)
    assert done.returncode == 0


def test_an_internal_error_does_not_end_the_session(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("fitcheck.cli.session.commands.showing.state_lines", broken)
    assert "internal error (RuntimeError: boom)" in script.run("show")[1]
    assert "model" in script.run("help")[0]


def test_an_interrupted_command_does_not_end_the_session(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fitcheck.cli.session.commands.showing.state_lines", interrupted)
    assert "interrupted" in script.run("show")[1]


# completion


def completed(script: Script, text: str) -> list[str] | None:
    last = "" if text.endswith(" ") or not text else text.split()[-1]
    before = text[: len(text) - len(last)].split()
    found = completing.words(script.state, before, last)
    return None if found is None else [word for word, _ in found]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("mem", "memory"),
        ("gpu 40", "4090"),
        ("model meta-llama/Llama-3.1", LLAMA),
        ("memory --lora", "--lora-r"),
        ("mem --no-fl", "--no-flash-attn"),
        ("memory --quant ", "nf4"),
        ("memory --optimizer adam8", "adam8bit"),
        ("memory --gpu h1", "h100"),
        ("infer --engine vl", "vllm"),
        ("advise --seq", "--seq-lens"),
        ("compare a1", "a100-40"),
        ("derive activ", "activations"),
        ("rules li", "lint"),
        ("help adv", "advise"),
    ],
)
def test_completion_comes_from_the_commands(script: Script, text: str, word: str) -> None:
    assert word in (completed(script, text) or [])


def test_names_of_files_are_completed_as_files(script: Script) -> None:
    assert completed(script, "save ") is None and completed(script, "load x") is None
    assert completed(script, "memory --nope ") is not None


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLUMNS", "200")
    yield


def test_session_and_api_agree(script: Script) -> None:
    script.ready().run("memory --qlora --lora-r 64 --batch-size 4 --flash-attn")
    report = estimate(LLAMA, gpu="4090", qlora=True, lora_r=64, batch_size=4, flash_attn=True)
    assert script.state.seen[TRAINING].to_dict() == report.to_dict()
