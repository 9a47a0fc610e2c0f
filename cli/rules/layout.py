"""Plain text in columns and paragraphs, as wide as the terminal, for the workshop commands."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence

from fitcheck.cli.output import fitted, harmless, write

NARROWEST, WIDEST = 60, 120


def width() -> int:
    """Columns of the terminal, within what is readable."""
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def say(*lines: str) -> None:
    """Lines on standard output, without control characters of the files they may quote."""
    write(harmless("\n".join(line.rstrip() for line in lines)))


def columns(
    rows: Sequence[Sequence[str]], indent: int = 0, right: Collection[int] = ()
) -> list[str]:
    """Rows in aligned columns; the last column is wrapped below itself where it is too wide."""
    if not rows:
        return []
    last = max(len(row) for row in rows) - 1
    sizes = [max((len(r[i]) for r in rows if i < len(r)), default=0) for i in range(last)]
    used = [i for i in range(last) if sizes[i]]  # a column without any text takes no room
    start = indent + sum(sizes) + 2 * len(used)
    room = max(width() - start, 24)
    lines = []
    for row in rows:
        cells = [
            row[i].rjust(sizes[i]) if i in right else row[i].ljust(sizes[i])
            for i in used
            if i < len(row)
        ]
        head = " " * indent + "".join(f"{cell}  " for cell in cells)
        text = row[last] if len(row) > last else ""
        wrapped = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"{head}{wrapped[0]}".rstrip())
        lines += [f"{' ' * start}{more}" for more in wrapped[1:]]
    return lines


def paragraph(text: str, indent: str = "") -> str:
    """A text as one wrapped paragraph."""
    return textwrap.fill(
        " ".join(text.split()),
        width(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 problem`, `2 problems`, `2 cases`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class Progress:
    """What is being worked on, in one line of standard error; silent where it is no terminal."""

    def __init__(self) -> None:
        self.stream = sys.stderr
        self.shown = self.stream is not None and self.stream.isatty()

    def __call__(self, text: str) -> None:
        if self.shown:
            line = fitted(harmless(text), self.stream)[: width() - 1]
            self.stream.write(f"\r\x1b[K{line}")
            self.stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
