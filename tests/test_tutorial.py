"""docs/tutorial.md, followed word for word: its files are written, its commands run and compared.

A fenced block is `yaml FILE` (a whole file), `diff FILE` (lines of a file that is there), or
`console`: lines that begin with `$ ` are commands, the others what they print. A line `...` stands
for any lines, and inside a line for any text.

    python tests/test_tutorial.py --write      puts what the commands print now into the page
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REST = "..."


class Reader:
    """Somebody who does what the page says, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = 0
        self.commands = 0

    def follow(self, page: str) -> Iterator[tuple[re.Match[str], str]]:
        """Every block with its text as it should be; raises AssertionError for a useless one."""
        for block in BLOCK.finditer(page):
            kind, name, text = block.groups()
            if kind == "console":
                yield block, self.type(text)
                continue
            assert name, f"a {kind} block needs the name of its file:\n{text}"
            path = self.folder / name
            if kind == "diff":
                text = self.edited(path.read_text(encoding="utf-8"), text, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            yield block, block[3]

    def edited(self, old: str, diff: str, name: str) -> str:
        lines = diff.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        assert old.count(before) == 1, f"{name} does not have these lines once:\n{before}"
        return old.replace(before, after)

    def type(self, text: str) -> str:
        """A console block with what its commands print, kept where it matches."""
        shown = []
        for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            printed = self.run(command.removeprefix("$ "))
            same = matches(expected.splitlines(), printed)
            body = expected.splitlines() if same else printed
            shown.append("\n".join([command, *body, ""]))
        return "".join(shown)

    def run(self, command: str) -> list[str]:
        if command == "echo $?":
            return [str(self.status)]
        words = shlex.split(command)
        assert words[0] == "fitcheck", command
        self.commands += 1
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env=environment(),
            timeout=60,
        )
        self.status = done.returncode
        return [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")]


def environment() -> dict[str, str]:
    """The reader's environment: 80 columns, no network, no rules from elsewhere."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FITCHECK_")}
    return {**kept, "COLUMNS": "80", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", "PYTHONUTF8": "1"}


def matches(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the printed lines are the expected ones, where `...` stands for any."""
    if not expected:
        return not printed
    if expected[0] == REST:
        return any(matches(expected[1:], printed[i:]) for i in range(len(printed) + 1))
    form = ".*".join(map(re.escape, expected[0].split(REST)))
    same = bool(printed) and re.fullmatch(form, printed[0]) is not None
    return same and matches(expected[1:], printed[1:])


@pytest.mark.skipif(os.name == "nt", reason="the page shows paths with /")
def test_the_tutorial_holds_word_for_word(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for block, text in reader.follow(PAGE.read_text(encoding="utf-8")):
        assert block[3] == text
    assert reader.commands >= 15


def test_an_abbreviated_output_still_has_to_match() -> None:
    assert matches(["a", REST, "c"], ["a", "b", "b", "c"])
    assert matches(["a", REST, "c"], ["a", "c"])
    assert matches([REST], [])
    assert not matches(["a", REST, "c"], ["a", "b", "c", "d"])
    assert not matches(["a"], ["a", "b"])
    assert matches(["in ... files (x)"], ["in 12 files (x)"])
    assert not matches(["in ... files (x)"], ["in 12 files"])


def main() -> None:
    """Take over what the commands print now; `...` stays where the rest still matches."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        blocks = [(block.span(3), text) for block, text in Reader(Path(folder)).follow(page)]
    for (start, end), text in reversed(blocks):
        page = page[:start] + text + page[end:]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    main()
