"""The way without click answers exactly as the one with it, and takes only what it understands."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from fitcheck.cli import start
from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run as run_click

LLAMA = "meta-llama/Llama-3.1-8B"
PLAIN = [
    [LLAMA],
    [LLAMA, "--qlora", "--json"],
    [LLAMA, "--json", "--qlora", "--lora-r", "64", "--gpu", "a100"],
    [LLAMA, "--no-lora", "--optimizer", "sgd", "--vram-mib", "81920"],
    [LLAMA, "--quant", "nf4", "--double-quant", "--flash-attn", "--seq-len", "8192", "--gpu", "t4"],
    [LLAMA, "--lora-targets", "full", "--json", "--batch-size", "2", "--batch-size", "3"],
    ["Qwen/Qwen2.5-0.5B", "--json", "--gpu", "4090", "--vram-mib", "20000"],
    ["no/such-model-anywhere", "--json"],
]
LEFT_TO_CLICK = [
    [],
    ["--help"],
    ["--version"],
    ["estimate", LLAMA],
    ["rules", "list"],
    [LLAMA, "--explain"],
    [LLAMA, "--quant", "NF4"],
    [LLAMA, "--quant", "nf5"],
    [LLAMA, "--lora-r"],
    [LLAMA, "--lora-r", "--json"],
    [LLAMA, "--lora-r", "x"],
    [LLAMA, "--lora-r", "-4"],
    [LLAMA, "--lora-r=4"],
    [LLAMA, "--qlor"],
    [LLAMA, "another"],
    [LLAMA, "--gpu", "no-such-card"],
    [LLAMA, "--gpu", ""],
    [LLAMA, "--batch-size", "0"],
    [LLAMA, "--batch-size", "٣"],
    [LLAMA, "--qlora", "--no-lora"],
    [LLAMA, "--no-flash-attn"],
    [LLAMA, "--", "--json"],
    [LLAMA, "--rules", "."],
    [LLAMA, "--json", "-h"],
]


def outcome(action: Any, words: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = guarded(lambda: action(words))
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("FITCHECK_RULES", raising=False)


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_both_ways_answer_the_same(words: list[str]) -> None:
    assert start.plain(words) is not None
    assert outcome(start.run, words) == outcome(run_click, words)


@pytest.mark.parametrize("words", LEFT_TO_CLICK, ids=" ".join)
def test_everything_else_is_left_to_click(words: list[str]) -> None:
    assert start.plain(words) is None


def test_what_is_left_to_click_is_answered_there() -> None:
    words = [LLAMA, "--gpu", "no-such-card"]
    assert outcome(start.run, words) == outcome(run_click, words)
    assert outcome(start.run, words)[0] == 2


def test_a_config_of_ones_own_is_answered_the_same(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "hidden_size": "wide"}), encoding="utf-8")
    words = [str(config), "--json"]
    assert start.plain(words) is not None
    assert outcome(start.run, words) == outcome(run_click, words)
    assert outcome(start.run, words)[0] == 2


def test_changed_rules_are_left_to_click(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FITCHECK_RULES", str(tmp_path))
    assert start.plain([LLAMA, "--json"]) is None


def test_completion_is_left_to_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_FITCHECK_COMPLETE", "bash_complete")
    assert start.plain([LLAMA]) is None


def test_the_subcommands_are_those_of_click() -> None:
    import click

    from fitcheck.cli.main import cli
    from fitcheck.engine.modes import bundled_commands

    known = sorted({*start.SUBCOMMANDS, *bundled_commands()})
    assert known == cli.list_commands(click.Context(cli))


def test_what_is_not_given_is_what_click_leaves_it_at() -> None:
    from fitcheck.cli.estimate import build

    params = build(()).make_context("fitcheck", [LLAMA]).params
    assert {name: params[name] for name in start.LEFT_ALONE} == start.LEFT_ALONE
