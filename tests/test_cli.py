"""The command line as scripts and CI jobs use it: exit status, JSON, flags, and what is refused."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import click
import pytest

from fitcheck import __version__
from fitcheck.cli import answer as answer_module, start
from fitcheck.cli.main import cli
from fitcheck.engine.api import estimate, rules_for
from fitcheck.engine.flags import Flag
from fitcheck.engine.spelling import opposite

LLAMA = "meta-llama/Llama-3.1-8B"
FLAGS = {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True}
GOLDEN = ["--qlora", "--lora-r", "64", "--batch-size", "4", "--flash-attn", "--gpu", "4090"]
CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def call(*args: str) -> Outcome:
    """Run the command in this process."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        cli.main([*args])
    assert isinstance(left.value.code, int)
    return Outcome(left.value.code, out.getvalue(), err.getvalue())


def refused(*args: str) -> str:
    """The sentence with which a command is refused."""
    outcome = call(*args)
    assert (outcome.status, outcome.out) == (2, "")
    first, *rest = outcome.err.splitlines()
    assert first.startswith("error: ")
    assert not [line for line in rest if not line.startswith("Try 'fitcheck")]
    return first.removeprefix("error: ")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


# exit status


@pytest.mark.parametrize(
    ("flags", "status", "verdict"),
    [
        (["--qlora", "--gpu", "4090"], 0, "safe"),
        (["--qlora", "--gpu", "4090", "--batch-size", "2"], 1, "uncertain"),
        (GOLDEN, 1, "does_not_fit"),
    ],
)
def test_exit_status_is_that_of_the_verdict(flags: list[str], status: int, verdict: str) -> None:
    as_json, as_table = call(LLAMA, *flags, "--json"), call(LLAMA, *flags)
    assert as_json.status == as_table.status == status
    assert as_json.data["verdict"]["status"] == verdict


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--quant", "int4"], "--quant int4 is not modelled; it can be none, nf4, int8."),
        (["--precision", "fp8"], "--precision fp8 is not modelled"),
        (["--optimizer", "lion"], "--optimizer lion is not modelled"),
        (["--batch-size", "0"], "--batch-size 0 is out of range; it goes from 1 to 1,048,576."),
        (["--batch-size", "1048577"], "out of range"),
        (["--seq-len", "16777217"], "--seq-len 16777217 is out of range"),
        (["--seq-len", "-1"], "out of range"),
        (["--lora-r", "1.5"], "--lora-r has to be a whole number, not '1.5'."),
        (["--batch-size", "nan"], "has to be a whole number"),
        (["--lora-targets", "q,,v"], "'' is no module name"),
        (["--lora-targets", "query"], "no linear module of this model is called query"),
        (["--gpu", "4091"], "Unknown GPU '4091'. Did you mean 4090"),
        (["--gpu", ""], "--gpu needs the name of a card"),
        (["--vram-mib", "0"], "--vram-mib has to be a whole number of MiB"),
        (["--vram-mib", "24GB"], "--vram-mib has to be a whole number of MiB"),
        (["--quant", "nf4", "--no-lora"], "not modelled"),
        (["--qlora", "--no-lora"], "not modelled"),
        (["--double-quant"], "only modelled with --quant nf4"),
        (["--optimizer", "sgd", "--optimizer-dtype", "bf16"], "not modelled"),
        (["--no-lora", "--lora-r", "8"], "--lora-r has no meaning with --no-lora"),
        (["--no-lora", "--lora-targets", "q"], "--lora-targets has no meaning with --no-lora"),
        (["--rules", "no/such/folder"], "no such folder"),
        (["--source", "disk"], "'disk' is not one of auto, local, catalogue and hub."),
        (["--format", "latex"], "--format is the format of --derive"),
        (["--derive", "activation"], "Did you mean `activations`?"),
        (["--qlroa"], "No such option"),
        (["--seq-len"], "requires an argument"),
        (["another"], "unexpected extra argument"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(args: list[str], says: str) -> None:
    sentence = refused(LLAMA, *args)
    assert says in sentence
    assert "not possible" not in sentence


def test_flags_are_checked_before_the_model_is_looked_for() -> None:
    assert "--quant int4" in refused("no/such-model", "--quant", "int4")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "config.json"),
        ("[]", "config.json"),
        (json.dumps({**CONFIG, "hidden_size": "wide"}), "hidden_size"),
        (json.dumps({**CONFIG, "num_hidden_layers": 0}), "num_hidden_layers"),
        (json.dumps({**CONFIG, "tie_word_embeddings": "yes"}), "tie_word_embeddings"),
        (json.dumps({**CONFIG, "num_local_experts": 8}), "num_local_experts"),
    ],
)
def test_a_broken_or_unsupported_config_exits_2(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content, encoding="utf-8")
    assert says in refused(str(path), "--json")


@pytest.mark.parametrize("model", ["", "./no/such/config.json", "no-such-org/no-such-model"])
def test_an_unreachable_model_exits_2(model: str) -> None:
    assert refused(model, "--json")


def test_broken_rule_files_exit_2_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "formulas").mkdir()
    (tmp_path / "formulas/total.yaml").write_text("id: total\nexpr: [", encoding="utf-8")
    outcome = call(LLAMA, "--rules", str(tmp_path))
    assert (outcome.status, outcome.out) == (2, "")
    assert "total.yaml:" in outcome.err and "^" in outcome.err


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("a bug")


def test_a_bug_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_module, "prepare", broken)
    monkeypatch.delenv("FITCHECK_DEBUG", raising=False)
    assert "internal error (ZeroDivisionError: a bug)" in refused(LLAMA)
    monkeypatch.setenv("FITCHECK_DEBUG", "1")
    assert "Traceback" in call(LLAMA).err


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (KeyboardInterrupt(), 130, ""),
        (OSError(28, "No space left on device"), 2, "error: No space left on device"),
        (PermissionError(13, "Permission denied", "rules"), 2, "error: Permission denied: rules"),
    ],
)
def test_what_the_system_does_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, says: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(answer_module, "prepare", fails)
    outcome = call(LLAMA)
    assert (outcome.status, outcome.err.strip()) == (status, says)


# without a model


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_needs_no_model(option: str) -> None:
    assert call(option) == (0, f"fitcheck {__version__}\n", "")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--json"], "MODEL is missing: --json formats the estimate"),
        (["--verbose", "--explain"], "--verbose and --explain format the estimate"),
        (["--derive"], "--derive formats"),
        (["--derive", "activations"], "--derive formats"),
        (["--qlora", "--no-lora"], "not modelled"),
        (["--gpu", "4091"], "Unknown GPU"),
    ],
)
def test_what_needs_a_model_or_is_wrong_starts_no_session(args: list[str], says: str) -> None:
    assert says in refused(*args)


# which words are the model


def test_a_model_may_be_named_like_a_subcommand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "estimate").mkdir()
    (tmp_path / "estimate/config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    named = call("estimate", "estimate", "--json")
    assert named.data["model"]["name"] == "estimate"
    assert named == call("--json", "estimate")
    assert call("./estimate", "--json").data["model"]["name"] == "estimate"


def test_other_subcommands_stay_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    other = click.Command("other", callback=lambda: click.echo("other ran"))
    monkeypatch.setitem(sys.modules, "others", SimpleNamespace(build=lambda overlays: other))
    monkeypatch.setitem(start.SUBCOMMANDS, "other", "others")
    assert call("other").out == "other ran\n"
    assert "other" in refused("estimate", "other", "--source", "local")


def test_usage_never_names_the_internal_command() -> None:
    help_text = call("--help")
    assert help_text.status == 0
    assert help_text.out.startswith("Usage: fitcheck MODEL [OPTIONS]")
    assert call(LLAMA, "--help").out == help_text.out
    assert call("estimate", "--help").out.startswith("Usage: fitcheck estimate MODEL [OPTIONS]")
    assert "Try 'fitcheck --help'" in call(LLAMA, "--nope").err


def test_help_has_every_flag_in_its_section() -> None:
    text, flags = call("--help").out, rules_for().flags
    for group in flags.groups:
        assert f"\n{group}:\n" in text
    for flag in (*flags.flags.values(), *flags.shorthands.values()):
        assert f"  {flag.option}" in text
        section = text.index(f"\n{flag.group}:\n")
        assert text.index(f"  {flag.option}", section) > section
    for option in ("--gpu", "--vram-mib", "--list-gpus", "--json", "--explain", "-V, --version"):
        assert f"\n  {option} " in text
    assert "Exit status:\n  0  safe\n  1  does not fit or uncertain\n  2  " in text
    assert "\n  -h, --help " in text and call("-h") == call("--help") == call(LLAMA, "-h")


# flags


@pytest.mark.parametrize(
    ("args", "flags"),
    [
        (["--quant", "nf4", "--double-quant"], {"quant": "nf4", "double_quant": True}),
        (["--quant", "INT8"], {"quant": "int8"}),
        (["--precision", "fp16"], {"precision": "fp16"}),
        (["--qlora"], {"qlora": True}),
        (["--qlora", "--precision", "fp16"], {"qlora": True, "precision": "fp16"}),
        (["--quant", "none", "--qlora"], {"qlora": True, "quant": "none"}),
        (["--qlora", "--no-grad-checkpoint"], {"qlora": True, "grad_checkpoint": False}),
        (["--lora-r", "8"], {"lora_r": 8}),
        (["--no-lora"], {"lora": False}),
        (["--lora"], {}),
        (["--lora-targets", "full"], {"lora_targets": "full"}),
        (["--lora-targets", "q,v_proj"], {"lora_targets": ["q_proj", "v_proj"]}),
        (["--batch-size=3", "--grad-accum", "2"], {"batch_size": 3, "grad_accum": 2}),
        (["--seq-len", "512"], {"seq_len": 512}),
        (["--optimizer", "adam8bit"], {"optimizer": "adam8bit"}),
        (["--optimizer", "sgd-momentum"], {"optimizer": "sgd-momentum"}),
        (["--optimizer-dtype", "bf16"], {"optimizer_dtype": "bf16"}),
        (["--grad-checkpoint", "--flash-attn"], {"grad_checkpoint": True, "flash_attn": True}),
        (["--gpu", "rtx 3090"], {"gpu": "3090"}),
        (["--vram-mib", "24001"], {"vram_mib": 24001}),
        (["--source", "catalogue"], {"source": "catalogue"}),
    ],
)
def test_a_flag_does_what_the_keyword_of_the_api_does(
    args: list[str], flags: dict[str, Any]
) -> None:
    data = call(LLAMA, *args, "--json").data
    assert all(proposal.pop("command") for proposal in data["proposals"])
    assert data == estimate(LLAMA, **flags).to_dict()


def test_every_declared_flag_is_an_option_of_its_kind() -> None:
    flags, context = rules_for().flags, click.Context(cli)
    command = cli.resolve_command(context, ["estimate"])[1]
    assert command is not None
    options = {o: p for p in command.params for o in (*p.opts, *p.secondary_opts)}
    for flag in flags.flags.values():
        param = options[flag.option]
        assert param.name == flag.id
        if flag.kind == "switch":
            assert options[opposite(flag.option)] is param
    assert "lora" in {f.id for f in flags.flags.values() if isinstance(f, Flag) and f.inverse}


@pytest.fixture
def changed_flags(tmp_path: Path) -> Callable[[str, str], str]:
    """An overlay folder in which one text of flags.yaml is another."""

    def change(old: str, new: str) -> str:
        text = (Path(__file__).parents[1] / "formulas/flags.yaml").read_text(encoding="utf-8")
        assert old in text
        (tmp_path / "formulas").mkdir()
        (tmp_path / "formulas/flags.yaml").write_text(text.replace(old, new), encoding="utf-8")
        return str(tmp_path)

    return change


def test_rules_change_defaults_and_help(changed_flags: Callable[[str, str], str]) -> None:
    folder = changed_flags("    default: adamw\n", "    default: sgd\n")
    assert "[default: sgd]" in call("--help", "--rules", folder).out
    assert "[default: sgd]" in call(f"--rules={folder}", "--help").out
    assert "[default: sgd]" not in call("--help", "--", "--rules", folder).out
    assert call(LLAMA, "--rules", folder, "--json").data["training"]["optimizer"] == "sgd"


def test_rules_may_add_a_flag(changed_flags: Callable[[str, str], str]) -> None:
    new = "flags:\n  torch: {option: --torch, group: Training options, type: version, "
    folder = changed_flags("flags:\n", new + 'default: "2.9", help: Version of torch.}\n')
    assert "--torch VERSION" in call("--help", "--rules", folder).out
    assert "torch 2.9 ·" in call(LLAMA, "--rules", folder).out
    outcome = call(LLAMA, "--rules", folder, "--torch", "2.10", "--json")
    assert outcome.data["training"]["torch"] == "2.10"
    assert "is not a version" in refused(LLAMA, "--rules", folder, "--torch", "new")
    assert "No such option" in refused(LLAMA, "--torch", "2.10")


# JSON


def test_the_golden_json() -> None:
    outcome = call(LLAMA, *GOLDEN, "--json")
    data = outcome.data
    assert outcome.err == ""
    assert data["fitcheck_version"] == __version__
    assert data["trainable_params"] == 54_525_952
    assert data["activations_per_layer_mib"] == 1648.0
    expected = {
        "weights": 7753.02,
        "lora": 208.0,
        "optimizer": 416.0,
        "gradients": 208.0,
        "activations": 20128.0,
        "overhead": 1894.05,
        "total": 30607.07,
    }
    assert expected.items() <= data["memory_mib"].items()
    assert {"name", "vram_mib", "usable_mib"} <= data["gpu"].keys()
    assert data["training"]["quantization"] == "nf4" and data["training"]["grad_checkpoint"]
    assert data["verdict"] == {
        "fits": False,
        "safe_fits": False,
        "status": "does_not_fit",
        "gpu_capacity_mib": 23500.0,
        "headroom_mib": -7107.07,
        "safe_total_mib": 30607.07,
        "safe_headroom_mib": -7107.07,
        "headroom_pct": -30.24,
        "max_batch_size": 2,
        "estimated_max_batch_size": 2,
        "recommended_batch_size": 1,
        "recommendation_basis": "point_estimate_margin",
        "effective_batch_size": 4,
        "reasons": ["the estimate is 30,607 MiB, the card gives 23,500 MiB"],
    }
    assert "adamw -> adam8bit: saves 312 MiB" in data["savings_hints"]
    assert "--flash-attn OFF: costs 0 MiB (currently ON)" in data["savings_hints"]
    assert not [hint for hint in data["savings_hints"] if "  " in hint or ".." in hint]
    assert data["warnings"] == [] and data["overlays"] == []


def test_proposals_lead_where_they_say() -> None:
    first, second = call(LLAMA, *GOLDEN, "--json").data["proposals"]
    assert first == {
        "goal": "fits",
        "changes": {"batch_size": 2, "grad_accum": 2},
        "total_mib": 20039.87,
        "status": "uncertain",
        "command": f"fitcheck {LLAMA} --qlora --lora-r 64 --batch-size 2 --grad-accum 2 "
        "--flash-attn --gpu 4090",
    }
    assert (second["goal"], second["status"]) == ("safe", "safe")
    for proposal in (first, second):
        again = call(*shlex.split(proposal["command"])[1:], "--json").data
        assert again["verdict"]["status"] == proposal["status"]
        assert again["memory_mib"]["total"] == proposal["total_mib"]
        same = estimate(LLAMA, **{**FLAGS, **proposal["changes"]})
        assert (same.status, same.exit_code) == (proposal["status"], int(proposal is first))


def test_an_uncertain_run_is_told_what_is_safe_and_a_safe_one_nothing() -> None:
    uncertain = call(LLAMA, "--qlora", "--batch-size", "2", "--json").data
    assert uncertain["verdict"]["status"] == "uncertain"
    assert [p["goal"] for p in uncertain["proposals"]] == ["safe"]
    assert call(LLAMA, "--qlora", "--json").data["proposals"] == []


def each(value: Any, key: str = "") -> list[tuple[str, Any]]:
    """Every leaf with its dotted key."""
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in each(v, f"{key}.{k}")]
    if isinstance(value, list):
        return [leaf for v in value for leaf in each(v, key)]
    return [(key, value)]


@pytest.mark.parametrize("flags", [GOLDEN, ["--gpu", "t4", "--precision", "fp16"], ["--no-lora"]])
def test_mib_have_two_decimals_and_bytes_are_whole(flags: list[str]) -> None:
    for key, value in each(call(LLAMA, *flags, "--json").data):
        if "_mib" in key:
            assert value == round(value, 2)
        if "_bytes." in key:
            assert isinstance(value, int)


def test_warnings_are_in_the_json_and_on_standard_error() -> None:
    outcome = call(LLAMA, "--quant", "int8", "--json")
    (warning,) = outcome.data["warnings"]
    assert f"warning: {warning}\n" in outcome.err
    assert f"warning: {warning}\n" in call(LLAMA, "--quant", "int8").err


def test_remarks_are_warnings_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from fitcheck.engine.report import Report

    monkeypatch.setattr(Report, "remarks", property(lambda _: ("\x1b[31msomething\x07 to know",)))
    assert call(LLAMA, "--qlora", "--json").err == "warning: ?[31msomething? to know\n"


def test_a_name_of_several_cards_is_noted_on_standard_error() -> None:
    outcome = call(LLAMA, "--qlora", "--gpu", "RTX 3060", "--json")
    assert outcome.data["gpu"]["key"] == "3060-8"
    assert outcome.err == (
        "note: 'RTX 3060' comes in several sizes; the smallest in the database was taken: NVIDIA "
        "GeForce RTX 3060 8 GB (--gpu 3060-8); for another write 3060-12\n"
    )
    assert call(LLAMA, "--qlora", "--gpu", "RTX 3060 12GB", "--json").err == ""


def test_who_waits_for_the_hub_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from fitcheck.engine.sources import waiting

    call(LLAMA, "--qlora")
    out = StringIO()
    with redirect_stderr(out):
        waiting.tell("asking")
    assert out.getvalue() == "note: asking\n"


def test_explain_and_verbose_add_keys_to_the_json() -> None:
    plain = call(LLAMA, *GOLDEN, "--json").data
    more = call(LLAMA, *GOLDEN, "--json", "--explain", "--verbose").data
    assert more.keys() - plain.keys() == {"explanation", "quantities"}
    assert more["explanation"].startswith("Largest component: activations")
    assert more["quantities"]["A_layer"]["value"] == {"0": 1648 << 20}
    assert more["quantities"]["total"] == {"title": "Total", "unit": "byte", "value": 32093835264}


def test_overlays_are_named_and_never_safe(tmp_path: Path) -> None:
    card = (Path(__file__).parents[1] / "gpus/4090.yaml").read_text(encoding="utf-8")
    mine = card.replace('id: "4090"', "id: mine").split("aliases:")[0] + "aliases: []\n"
    mine += card[card.index("marketed:") :]
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus/mine.yaml").write_text(mine, encoding="utf-8")
    outcome = call(LLAMA, "--qlora", "--gpu", "mine", "--rules", str(tmp_path), "--json")
    assert outcome.status == 1
    assert outcome.data["verdict"]["status"] == "uncertain"
    assert outcome.data["overlays"] == [str(tmp_path)]
    table = call(LLAMA, "--qlora", "--gpu", "mine", "--rules", str(tmp_path)).out
    assert "changed by" in table and str(tmp_path) in "".join(table.split())


# derivations


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_derive_prints_one_quantity_in_each_format(form: str) -> None:
    outcome = call(LLAMA, *GOLDEN, "--derive", "lora", "--format", form)
    assert outcome.status == 1
    assert outcome.out == estimate(LLAMA, **FLAGS).derive("lora", form).rstrip("\n") + "\n"


def test_derive_without_a_component_prints_all_and_may_stand_before_the_model() -> None:
    last = call(LLAMA, *GOLDEN, "--derive")
    assert "30,607" in last.out or "32,093,835,264" in last.out
    assert call("--derive", LLAMA, *GOLDEN) == last
    assert call(*GOLDEN, "--derive", LLAMA) == last


def test_derive_with_json_is_json() -> None:
    as_json = call(LLAMA, *GOLDEN, "--derive", "total", "--json")
    assert json.loads(as_json.out)
    assert as_json == call(LLAMA, *GOLDEN, "--derive", "total", "--format", "json")


# as a program


def program(*args: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fitcheck", *args]
    return subprocess.run(command, text=True, encoding="utf-8", stderr=subprocess.PIPE, **settings)


def test_python_m_fitcheck(config: str) -> None:
    done = program(config, "--qlora", "--gpu", "4090", "--json", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["model"]["hidden_size"] == 2048


def test_a_warning_of_the_program_leaves_its_json_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "model_type": "unheard-of"}), encoding="utf-8")
    done = program(str(path), "--qlora", "--gpu", "4090", "--json", stdout=subprocess.PIPE)
    assert done.returncode == 1
    (warning,) = json.loads(done.stdout)["warnings"]
    assert warning.startswith("model_type unheard-of was never checked")
    told = done.stderr.splitlines()
    assert f"warning: {warning}" in told
    assert all(line.startswith("warning: ") for line in told)


posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX streams")


@posix
@pytest.mark.parametrize("args", [["--list-gpus"], [LLAMA], [LLAMA, "--json"]])
def test_a_reader_that_goes_away_is_no_failure(args: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = program(*args, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (int(LLAMA in args), "")


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = program("--version", stdout=full)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


@posix
def test_closed_streams_are_no_failure() -> None:
    def closed(*numbers: int) -> Callable[[], None]:
        return lambda: [os.close(n) for n in numbers] and None

    done = subprocess.run(
        [sys.executable, "-m", "fitcheck", LLAMA, "--json"], preexec_fn=closed(1, 2)
    )
    assert done.returncode == 1


def test_a_library_has_one_version() -> None:
    """What a run is priced for must not hang on which of two options is read last."""
    line = [LLAMA, "--transformers", "4.57.6", "--stack"]
    twice = call(*line, "transformers=5.24.0")
    assert twice.status == 2
    assert "--stack and --transformers name two versions: give one." in twice.err
    assert call(*line, "transformers=4.57.6", "--json").status in (0, 1)
