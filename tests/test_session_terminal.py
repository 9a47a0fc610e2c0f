"""The session in a terminal, typed through a pseudo-terminal as a person would."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals on Windows", allow_module_level=True)

import pty

LLAMA = "meta-llama/Llama-3.1-8B"
SECONDS = 40  # until a test gives up; a busy machine is slow
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07|\r")


class Terminal:
    """A session at the other end of a pseudo-terminal."""

    def __init__(self, home: Path, *words: str, **environment: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fitcheck", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            close_fds=True,
            start_new_session=True,
            env={
                **os.environ,
                "TERM": "xterm",
                "COLUMNS": "100",
                "LINES": "40",
                "XDG_STATE_HOME": str(home),
                **environment,
            },
        )
        os.close(slave)
        self.seen = ""

    def type(self, text: str) -> None:
        """Press keys, once the prompt stands still: a command that runs would lose some."""
        self.settle()
        os.write(self.master, text.encode())

    def settle(self) -> None:
        while self.read(0.7):
            pass

    def read(self, seconds: float) -> bool:
        """Take what is shown within some seconds; whether there was anything."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            new = os.read(self.master, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            return False
        if "\x1b[6n" in new:  # prompt_toolkit asks where the cursor is
            os.write(self.master, b"\x1b[1;1R")
        self.seen = CODES.sub("", self.seen + new)
        return True

    def wait(self, text: str) -> str:
        """What was shown up to a text, without control codes; it is not shown again."""
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            self.read(0.2)
            assert time.monotonic() < end, f"{text!r} was not shown: {self.seen[-2000:]!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def ended(self) -> int:
        """The exit status; what is still shown is read, so that nothing waits for it."""
        while self.process.poll() is None and self.read(SECONDS):
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def opened(terminals: list[Terminal], home: Path, *words: str, **environment: str) -> Terminal:
    terminals.append(Terminal(home, *words, **environment))
    terminals[-1].wait("fitcheck>")
    return terminals[-1]


def test_a_person_types_and_leaves_with_control_d(
    terminals: list[Terminal], tmp_path: Path
) -> None:
    terminal = opened(terminals, tmp_path, "--qlora", "--gpu", "4090")
    terminal.type(f"model {LLAMA}\r")
    terminal.wait("8.03 B parameters")
    terminal.type("memory\r")
    terminal.wait("differs: --qlora")
    terminal.wait("FITS")
    terminal.type("\x04")
    assert terminal.ended() == 0


def test_control_c_clears_the_line_and_the_session_goes_on(
    terminals: list[Terminal], tmp_path: Path
) -> None:
    terminal = opened(terminals, tmp_path)
    terminal.type("gpu 409")
    terminal.wait("gpu 409")
    terminal.type("\x03")
    terminal.type("gpu t4\r")
    terminal.wait("Tesla T4")
    terminal.type("exit\r")
    assert terminal.ended() == 0


def test_the_tab_key_completes(terminals: list[Terminal], tmp_path: Path) -> None:
    terminal = opened(terminals, tmp_path)
    terminal.type("gpu b30\t")
    terminal.wait("gpu b300")
    terminal.type("\r")
    terminal.wait("NVIDIA B300")
    terminal.type("q\r")
    assert terminal.ended() == 0


def test_lines_of_an_earlier_session_come_back(terminals: list[Terminal], tmp_path: Path) -> None:
    first = opened(terminals, tmp_path)
    first.type("gpu h100\r")
    first.wait("H100 80 GB")
    first.type("exit\r")
    assert first.ended() == 0
    assert "+gpu h100" in (tmp_path / "fitcheck/history").read_text(encoding="utf-8")
    second = opened(terminals, tmp_path)
    second.type("\x10\x10")  # the key for the line before: exit, and once more: the card
    second.wait("gpu h100")
    second.type("\r")
    second.wait("H100 80 GB")
    second.type("\x04")
    assert second.ended() == 0


def test_without_a_place_for_history_it_works_and_keeps_none(
    terminals: list[Terminal], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    terminal = opened(terminals, tmp_path / "file")
    terminal.type("gpu t4\r")
    terminal.wait("Tesla T4")
    terminal.type("\x04")
    assert terminal.ended() == 0
    quiet = opened(terminals, tmp_path, FITCHECK_NO_HISTORY="1")
    quiet.type("exit\r")
    assert quiet.ended() == 0 and not (tmp_path / "fitcheck").exists()


def test_a_terminal_that_can_do_nothing_is_enough(
    terminals: list[Terminal], tmp_path: Path
) -> None:
    terminal = opened(terminals, tmp_path, TERM="dumb")
    terminal.type("gpu t4\r")
    terminal.wait("Tesla T4")
    terminal.type("\x04")
    assert terminal.ended() == 0
