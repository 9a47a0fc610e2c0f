"""What a person sees: the table at every width, colours, pipes, the GPU list, completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
import pytest
from rich.cells import cell_len

from fitcheck.cli.answer import Request
from fitcheck.cli.bars import EDGE, FREE, OVER, bar, capacity_bar
from fitcheck.cli.components import initials
from fitcheck.cli.main import cli
from fitcheck.cli.output import fitted, wants_colour
from fitcheck.cli.start import SUBCOMMANDS
from fitcheck.cli.words import command_lines, count, repeated, settings_words, whole_mib
from fitcheck.engine.api import estimate, rules_for
from fitcheck.engine.hints import proposals
from fitcheck.engine.report import build_report

LLAMA = "meta-llama/Llama-3.1-8B"
GOLDEN = ["--qlora", "--lora-r", "64", "--batch-size", "4", "--flash-attn", "--gpu", "4090"]
MIB = 1 << 20


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(*args: str, stream: StringIO | None = None) -> str:
    """Standard output of a command."""
    out = StringIO() if stream is None else stream
    with redirect_stdout(out), redirect_stderr(StringIO()), pytest.raises(SystemExit):
        cli.main([*args])
    return out.getvalue()


def at(width: int, *args: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return printed(*args)


# the table


def test_the_table_of_the_golden_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = at(100, LLAMA, *GOLDEN, monkeypatch=monkeypatch).splitlines()
    assert lines[0] == "Llama-3.1-8B on NVIDIA GeForce RTX 4090"
    assert lines[1] == "8.03 B parameters · 54.5 M trained"
    assert lines[2] == "bundled catalogue (profiles/models/meta-llama--llama-3.1-8b.yaml)"
    text = "\n".join(lines)
    assert "quant nf4 · precision bf16 · lora-r 64 · lora-targets standard" in text
    head = r"^component +MiB  of total  full bar = usable memory +L F B S +evidence$"
    assert re.search(head, text, re.M)
    assert re.search(r"^Activations +20,128 +65\.8 % +█+▏ +· ● ● · +derived$", text, re.M)
    assert re.search(r"^Gradients +208 +0\.7 % +▎ +· · ● ● +measured \(69 rows, T4\)$", text, re.M)
    assert re.search(r"^total +30,607 +100\.0 % +29\.9 GiB +▲ +assumed$", text, re.M)
    assert "30,607 MiB needed, 23,500 MiB usable of 24,576 MiB" in lines
    assert "L load 7,961 · F forward 30,399 · B backward 30,607 (peak) · S step 10,479" in lines
    assert " DOES NOT FIT  the estimate is 30,607 MiB, the card gives 23,500 MiB" in lines
    assert "headroom     -7,107 MiB (-30.2 % of the usable memory)" in lines
    assert "micro-batch  at most 2, recommended 1; effective batch 4" in lines
    assert "would fit    --batch-size 2 --grad-accum 2: 20,040 MiB, UNCERTAIN (a smaller" in text
    assert "to be safe   --batch-size 1 --grad-accum 4: 14,756 MiB, FITS" in lines
    assert "or on        NVIDIA A100 40 GB (--gpu a100-40), 39,500 MiB usable: FITS" in lines


@pytest.mark.parametrize("width", [20, 60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize(
    "args",
    [
        [LLAMA, *GOLDEN],
        [LLAMA, "--qlora", "--explain", "--verbose"],
        ["tinyllama/tinyllama-1.1b-chat-v1.0", "--gpu", "t4", "--precision", "fp16", "--qlora"],
        ["meta-llama/Llama-3.1-405B", "--no-lora", "--vram-mib", "12000"],
        ["--list-gpus"],
    ],
)
def test_every_line_fits_at_every_width(
    width: int, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = at(width, *args, monkeypatch=monkeypatch)
    assert "\x1b" not in text
    for line in text.splitlines():
        assert line == line.rstrip()
        assert cell_len(line) <= min(max(width, 60), 120), line


@pytest.mark.parametrize("width", [60, 80, 120])
def test_numbers_are_never_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = at(width, LLAMA, *GOLDEN, monkeypatch=monkeypatch)
    cards = at(width, "--list-gpus", monkeypatch=monkeypatch)
    for number in ("7,753", "20,128", "30,607", "100.0"):
        assert re.search(rf" {number} ", table)
    assert re.search(r"^h200 +144,384 +134,000 ", cards, re.M)
    assert not re.search(r"\d…", cards)


def test_bars_and_rows_of_evidence_need_room(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = at(60, LLAMA, *GOLDEN, monkeypatch=monkeypatch)
    assert re.search(r"^component +MiB  of total  L F B S +evidence$", narrow, re.M)
    assert " measured T4\n" in narrow and "rows" not in narrow
    middle = at(80, LLAMA, *GOLDEN, monkeypatch=monkeypatch)
    assert " full = usable " in middle and " measured T4\n" in middle and "rows" not in middle
    assert " of usable " in at(72, LLAMA, *GOLDEN, monkeypatch=monkeypatch)
    assert "measured (69 rows, T4)" in at(120, LLAMA, *GOLDEN, monkeypatch=monkeypatch)


def test_cards_of_the_evidence_give_way_before_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    large = ["meta-llama/Llama-3.1-405B", "--qlora", "--batch-size", "1048576"]
    text = at(60, *large, monkeypatch=monkeypatch)
    assert re.search(r"^Activations +[\d,]{13,} +[\d.]+ %  · ● ● ·  derived$", text, re.M)
    assert re.search(r"^Gradients .*  measured$", text, re.M)


def test_a_band_is_shown_with_where_it_comes_from() -> None:
    flags = ["--qlora", "--precision", "fp16", "--gpu", "t4", "--batch-size", "2"]
    text = " ".join(printed(LLAMA, *flags).split())
    spread = re.search(
        r" spread ([\d,]+) to ([\d,]+) MiB from the fitted CUDA overhead alone;", text
    )
    assert spread and spread[1] < spread[2]
    assert "spread" not in printed(LLAMA, *GOLDEN)
    # Rounded ends may differ by a byte, which is no spread.
    assert "spread" not in printed(LLAMA, "--seq-len", "8192", "--gpu", "3060-12")


def test_a_run_that_fits_proposes_nothing() -> None:
    text = printed(LLAMA, "--qlora")
    assert "\n FITS  it leaves" in text
    assert "would fit" not in text and "or on" not in text


def test_where_nothing_helps_it_says_so() -> None:
    text = printed("meta-llama/Llama-3.1-405B", "--no-lora", "--gpu", "t4")
    assert "would fit    none of the changes that fitcheck tries is enough\n" in text
    assert "or on        no single card in the database" in text
    assert "micro-batch  not even 1 fits" in text


def test_an_unsettled_answer_says_why(tmp_path: Path) -> None:
    config = {
        "model_type": "unheard_of",
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 22,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "vocab_size": 32000,
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text = printed(str(tmp_path), "--qlora")
    assert "\n UNCERTAIN " in text
    assert "not settled  model_type unheard_of is not verified" in text
    assert "to be safe" not in text and "or on" not in text  # no flag and no card settles that


def test_verbose_prints_layers_phases_and_quantities() -> None:
    text = printed(LLAMA, *GOLDEN, "--verbose")
    assert re.search(r"^in each of the layer groups +1 \(x 32\)$", text, re.M)
    assert re.search(r"^A_layer +1,648 MiB +Peak of one decoder layer", text, re.M)
    assert re.search(r"^phase_bytes +7,961 MiB +30,399 MiB +30,607 MiB +10,479 MiB", text, re.M)
    report = estimate(LLAMA)
    components = {c.id for c in report.components}
    for name in report:
        assert bool(re.search(rf"^{name} ", text, re.M)) is (name not in components)


def test_explain_follows_the_table() -> None:
    text = printed(LLAMA, *GOLDEN, "--explain")
    assert text.index("or on ") < text.index("Largest component: activations (20,128 MiB, 66%)")


# the command that would fit


@pytest.mark.parametrize(
    "args",
    [
        [LLAMA, *GOLDEN],
        [LLAMA, "--no-lora", "--gpu", "a100-80"],
        [LLAMA, "--batch-size", "8", "--seq-len", "1024", "--gpu", "RTX 3060 12GB"],
        [LLAMA, "--qlora", "--no-grad-checkpoint", "--optimizer-dtype", "bf16", "--gpu", "t4"],
        [LLAMA, "--qlora", "--vram-mib", "16000", "--batch-size", "9", "--source", "catalogue"],
    ],
)
@pytest.mark.parametrize("width", [60, 120])
def test_the_proposed_commands_can_be_pasted_and_do_what_they_say(
    args: list[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = at(width, *args, monkeypatch=monkeypatch)
    commands = re.findall(r"^ +(fitcheck (?:.*\\\n)*.*)$", text, re.M)
    offers = r"^(would fit|to be safe) .*?:\s+([\d,]+)\s+MiB,\s+([A-Z]+)"
    promised = re.findall(offers, text, re.M | re.S)
    assert promised and len(commands) == len(promised)
    for command, (label, total, title) in zip(commands, promised, strict=True):
        again = json.loads(printed(*shlex.split(command.replace("\\\n", " "))[1:], "--json"))
        assert again["verdict"]["fits"] is True
        assert again["verdict"]["safe_fits"] is (title == "FITS")
        assert title == "FITS" or label == "would fit"
        assert f"{again['memory_mib']['total']:,.0f}" == total


def test_an_uncertain_run_is_told_what_would_be_safe() -> None:
    text = printed(LLAMA, "--qlora", "--batch-size", "2")
    assert "\n UNCERTAIN " in text and "would fit" not in text
    assert "\nto be safe   --batch-size 1 --grad-accum 2: 14,132 MiB, FITS (" in text
    assert re.search(r"^or on .*: FITS$", text, re.M)


def test_a_change_back_to_a_default_drops_the_flag() -> None:
    flags = {"optimizer": "adamw", "optimizer_dtype": "bf16"}
    report = estimate(LLAMA, **flags)
    request = Request(LLAMA, flags, {"rules": ("a b", "c"), "vram_mib": 5})
    changed = repeated(report, request, {"optimizer": "adam8bit", "optimizer_dtype": "fp32"})
    assert changed is not None
    assert shlex.join(changed) == (
        f"fitcheck {LLAMA} --optimizer adam8bit --rules 'a b' --rules c --vram-mib 5"
    )
    assert repeated(report, request, {"quant": "none", "double_quant": True}) is None


def test_a_long_command_is_broken_before_options() -> None:
    words = ["fitcheck", "a model", "--one", "1", "--two", "--three", "3 3"]
    assert command_lines(words, 200) == ["fitcheck 'a model' --one 1 --two --three '3 3'"]
    lines = command_lines(words, 30)
    assert lines == ["fitcheck 'a model' --one 1 \\", "    --two --three '3 3'"]
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == words


@pytest.mark.parametrize(
    ("flags", "gpu"),
    [
        ({"batch_size": 8, "seq_len": 8192}, "t4"),
        ({"batch_size": 8, "seq_len": 1024, "precision": "fp32"}, "3060-12"),
        ({"lora": False}, "a100-80"),
    ],
)
def test_no_part_of_a_proposal_can_be_left_out(flags: dict[str, Any], gpu: str) -> None:
    prepared = estimate(LLAMA, gpu=gpu, **flags).prepared
    found = proposals(prepared)
    assert found and prepared.rules.hints is not None
    for proposal in found:
        for name, value in proposal.changes.items():
            before = prepared.settings.values[name]
            if name == "grad_accum" or isinstance(value, str):
                continue  # costs nothing; and some words only go together
            fewer = build_report(prepared.changed(**{**proposal.changes, name: before}))
            assert not (fewer["fits"] if proposal.goal == "fits" else fewer.safe), name


# colours and streams


def test_a_terminal_gets_colours() -> None:
    assert "\x1b[1mLlama-3.1-8B\x1b[0m" in printed(LLAMA, *GOLDEN, stream=Terminal())


@pytest.mark.parametrize(
    ("args", "name", "value"),
    [
        (["--no-color"], "UNRELATED", "1"),
        ([], "NO_COLOR", "1"),
        ([], "TERM", "dumb"),
    ],
)
def test_colours_can_be_refused(
    args: list[str], name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    coloured = printed(LLAMA, *GOLDEN, *args, stream=Terminal())
    assert "\x1b" not in coloured
    assert "\x1b" not in printed("--list-gpus", *args, stream=Terminal())
    assert coloured == printed(LLAMA, *GOLDEN)


def test_json_is_never_coloured() -> None:
    assert "\x1b" not in printed(LLAMA, "--json", stream=Terminal())


def test_no_color_set_to_nothing_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert wants_colour(Terminal())
    assert not wants_colour(Terminal(), refused=True) and not wants_colour(None)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "no-such-encoding"])
def test_signs_that_a_stream_cannot_carry_keep_their_columns(encoding: str) -> None:
    rich = printed(LLAMA, *GOLDEN, "--explain")
    stream = TextIOWrapper(BytesIO(), encoding="ascii")

    class Other:
        pass

    Other.encoding = encoding  # type: ignore[attr-defined]
    plain = fitted(rich, Other())  # type: ignore[arg-type]
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in rich.splitlines()]
    with redirect_stdout(stream), redirect_stderr(StringIO()), pytest.raises(SystemExit):
        cli.main([LLAMA, *GOLDEN])
    stream.seek(0)
    ascii_only = stream.read()
    assert "?" not in ascii_only
    assert re.search(r"^Gradients +208 +0\.7 % +- +\. \. \* \* ", ascii_only, re.M)


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "evil\x1b[31m[bold]name"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "vocab_size": 320,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text = printed(str(folder), "--vram-mib", "100")
    assert "\x1b" not in text
    assert re.match(r"evil.+\[31m\[bold\]name on a 100 MiB card\n", text)


# parts


def test_a_bar_is_never_empty_and_never_too_long() -> None:
    assert bar(0, 100, 10) == bar(5, 0, 10) == ""
    assert bar(1, 10**9, 10) == "▏"
    assert bar(100, 100, 10) == "█" * 10
    assert bar(150, 100, 10) == "█" * 9 + "→"
    assert bar(55, 100, 10) == "█" * 5 + "▌"


@pytest.mark.parametrize(
    ("needed", "usable", "total"),
    [(0, 90, 100), (1, 90, 100), (89, 90, 100), (90, 90, 100), (91, 90, 100), (9000, 90, 100)],
)
def test_the_edge_of_the_capacity_bar_tells_whether_it_fits(
    needed: int, usable: int, total: int
) -> None:
    text = capacity_bar([(needed, "red")] if needed else [], usable, total, 40).plain
    assert cell_len(text) == 40 and text.count(EDGE) == 1
    assert (OVER in text) is (needed > usable)
    assert (FREE in text.split(EDGE)[0]) <= (needed < usable)


def test_numbers_in_words() -> None:
    assert [whole_mib(n) for n in (0, 1, MIB // 2, MIB, 1500 * MIB)] == [
        "0",
        "<1",
        "0",
        "1",
        "1,500",
    ]
    assert [count(n) for n in (7, 13_631_488, 8_030_261_248, 406 * 10**9, 2 * 10**12)] == [
        "7",
        "13.6 M",
        "8.03 B",
        "406 B",
        "2 T",
    ]
    assert initials(["load", "prefill", "decode"]) == {
        "load": "L",
        "prefill": "P",
        "decode": "D",
    }
    assert initials(["step", "save"]) == {"step": "St", "save": "Sa"}


def test_settings_leave_out_what_has_no_meaning() -> None:
    flags = rules_for().flags

    def words(**given: Any) -> dict[str, bool]:
        return dict(settings_words(flags, flags.resolve(given)))

    assert words()["lora-r 16"] is False
    assert words(lora_r=64, lora_targets="q,up")["lora-targets q,up"] is True
    full = words(lora=False, optimizer="sgd")
    assert full["no-lora"] and full["optimizer sgd"]
    assert not [w for w in full if w.startswith(("lora-", "optimizer-dtype"))]


# the database of cards


def test_cards_are_listed_by_class_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    text = at(120, "--list-gpus", monkeypatch=monkeypatch)
    classes = [line for line in text.splitlines() if line and " " not in line]
    assert classes == ["consumer", "laptop", "workstation", "datacenter"]
    assert re.search(r"^4090 +24,576 +23,500 +\w+ / assumed +NVIDIA GeForce RTX 4090$", text, re.M)
    assert re.search(r"^t4 +14,912 +14,000 +measured / assumed +NVIDIA Tesla T4$", text, re.M)
    assert "(draft)" in text


@pytest.mark.parametrize("width", [None, 60, 72, 80, 120])
def test_no_name_of_a_card_is_cut(width: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        printed("--list-gpus")
        if width is None
        else at(width, "--list-gpus", monkeypatch=monkeypatch)
    )
    flat = " ".join(text.split())
    assert "…" not in text
    for title in ("RTX PRO 6000 Blackwell Workstation Edition", "RTX 3080 Laptop GPU 16 GB"):
        start, _, end = title.rpartition(" ")
        assert re.search(rf"{start.split()[0]}.*?{end}", flat)
    if width in (None, 120):
        assert "NVIDIA RTX PRO 6000 Blackwell Workstation Edition\n" in text


def test_cards_as_json() -> None:
    cards = {card["key"]: card for card in json.loads(printed("--list-gpus", "--json"))["gpus"]}
    assert len(cards) == len(list((Path(__file__).parents[1] / "gpus").glob("*.yaml")))
    t4 = cards["t4"]
    assert (t4["name"], t4["vram_mib"], t4["usable_mib"]) == ("NVIDIA Tesla T4", 14912, 14000)
    assert t4["evidence"]["total"]["grade"] == "measured" and t4["class"] == "datacenter"


# completion


def completed(words: str, position: int) -> list[str]:
    """What the shell is offered for the word at a position."""
    done = subprocess.run(
        [sys.executable, "-m", "fitcheck"],
        env={
            **os.environ,
            "_FITCHECK_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(position),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_models_cards_flags_and_values_are_completed() -> None:
    found = completed("fitcheck meta-llama/llama-3.1-8", 1)
    assert {"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"} <= set(found)
    assert {"qwen2.5-7b", "qwen2.5-7b-instruct"} <= set(completed("fitcheck qwen2.5-7", 1))
    words = {name for name in completed("fitcheck ''", 1) if name and "/" not in name}
    assert words == {*SUBCOMMANDS, "infer"}
    assert {"activations", "activation_element_bytes"} <= set(
        completed("fitcheck x --derive act", 3)
    )
    assert "meta-llama/Llama-3.1-8B" in completed("fitcheck --derive meta-llama/l", 2)
    assert {"h20", "h200"} <= set(completed("fitcheck x --gpu h2", 3))
    assert completed("fitcheck x --optimizer sgd-", 3) == ["sgd-momentum"]
    assert completed("fitcheck estimate x --source c", 4) == ["catalogue"]
    assert "--flash-attn" in completed("fitcheck x --flash", 2)


def test_a_broken_overlay_does_not_disturb_completion() -> None:
    assert completed("fitcheck x --rules /no/such/folder --optimizer sgd-", 5) == ["sgd-momentum"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_completion_script_is_printed(shell: str) -> None:
    text = printed("--completion", shell)
    assert f"_FITCHECK_COMPLETE={shell}_complete" in text and "fitcheck" in text


def test_subcommands_are_completed_where_they_may_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    from fitcheck.cli.completion import complete_model

    monkeypatch.setitem(SUBCOMMANDS, "other", "no.such.module")
    root = click.Context(cli, info_name="fitcheck")
    command = cli.get_command(root, "estimate")
    assert command is not None
    implied = click.Context(command, parent=root, info_name="")
    explicit = click.Context(command, parent=root, info_name="estimate")
    param = command.params[0]
    assert "other" in [i.value for i in complete_model(implied, param, "ot")]
    assert complete_model(implied, param, "ot")[0].type == "file"  # bash forgets what is before it
    assert "other" not in [i.value for i in complete_model(explicit, param, "ot")]
