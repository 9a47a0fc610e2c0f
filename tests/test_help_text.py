"""The help is printed from what was laid out last, and never after something has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fitcheck.cli import help_text
from fitcheck.engine import data_cache


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.delenv(data_cache.REFUSED, raising=False)
    monkeypatch.delenv("FITCHECK_RULES", raising=False)


@pytest.fixture
def laid_out() -> tuple[list[str], Callable[[], int]]:
    calls: list[str] = []

    def lay_out() -> int:
        calls.append("once")
        print(f"help {len(calls)}")
        return 0

    return calls, lay_out


def test_it_is_laid_out_once(laid_out: Any, capsys: pytest.CaptureFixture[str]) -> None:
    calls, lay_out = laid_out
    assert [help_text.show(lay_out) for _ in range(3)] == [0, 0, 0]
    assert (calls, capsys.readouterr().out) == (["once"], "help 1\n" * 3)


@pytest.mark.parametrize("name", ["COLUMNS", "LANGUAGE", "LC_ALL", "LANG"])
def test_another_width_or_language_lays_it_out_anew(
    laid_out: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    calls, lay_out = laid_out
    help_text.show(lay_out)
    monkeypatch.setenv(name, "71")
    help_text.show(lay_out)
    assert len(calls) == 2


@pytest.mark.parametrize("folder", help_text.FOLDERS)
def test_a_changed_file_lays_it_out_anew(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    before = help_text.made_from(str(tmp_path))
    (tmp_path / folder / "flags.yaml").write_text("flags: {}", encoding="utf-8")
    added = help_text.made_from(str(tmp_path))
    (tmp_path / folder / "flags.yaml").write_text("flags: []", encoding="utf-8")
    os.utime(tmp_path / folder / "flags.yaml", ns=(0, 0))
    assert len({str(key) for key in (before, added, help_text.made_from(str(tmp_path)))}) == 3


def test_what_fails_is_not_kept(laid_out: Any, capsys: pytest.CaptureFixture[str]) -> None:
    calls, lay_out = laid_out
    assert help_text.show(lambda: lay_out() + 2) == 2
    assert help_text.show(lay_out) == 0
    assert len(calls) == 2


def test_it_can_be_refused(laid_out: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, lay_out = laid_out
    monkeypatch.setenv(data_cache.REFUSED, "1")
    help_text.show(lay_out)
    help_text.show(lay_out)
    assert len(calls) == 2


def test_a_damaged_file_counts_for_nothing(laid_out: Any, tmp_path: Path) -> None:
    calls, lay_out = laid_out
    help_text.show(lay_out)
    (kept,) = (tmp_path / "cache/fitcheck").iterdir()
    kept.write_text('{"key": 1, "text": 2}', encoding="utf-8")
    help_text.show(lay_out)
    assert len(calls) == 2


def test_the_second_time_needs_no_click() -> None:
    program = (
        "import atexit, sys\n"
        "from fitcheck.cli.start import main\n"
        "sys.argv = ['fitcheck', '--help']\n"
        "atexit.register(lambda: print('click' in sys.modules, file=sys.stderr))\n"
        "main()\n"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout and "Usage: fitcheck MODEL" in first.stdout
    assert (first.stderr.strip(), second.stderr.strip()) == ("True", "False")
