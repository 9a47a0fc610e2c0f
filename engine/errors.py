"""What can go wrong, as types: each carries the place, what is wrong, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .record import record


class FitcheckError(Exception):
    """Base of everything fitcheck raises on purpose; its text is meant for a person."""


class InputProblem(FitcheckError, ValueError):
    """A flag, a model or a card that cannot be used as given (exit code 2)."""

    def __init__(self, message: str, *, flag: str | None = None) -> None:
        super().__init__(message)
        self.flag = flag


class ExtraMissing(InputProblem):
    """A library that is an extra of the installation is not there."""


class Refusal(FitcheckError, ValueError):
    """The input was read, but the memory model does not cover it (exit code 2)."""


def harmless(text: str) -> str:
    """A text without what a terminal would obey or could not show; names of files may hold both."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


@record
class Mark:
    """A place in a rule file; line and column count from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{harmless(self.path)}:{self.line}:{self.column}"

    def __lt__(self, other: Mark) -> bool:
        return (self.path, self.line, self.column) < (other.path, other.line, other.column)


MAX_SHOWN = 100  # problems that are printed at once
LONGEST = 2_000  # characters of a message that are shown
WIDTH = 160  # characters of a line that are shown, around the place


def shortened(text: str, most: int) -> str:
    """A text of a stranger's file, cut where it would fill the screen."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


@record
class Problem:
    """One finding in one rule file.

    `code` and `name` identify the check (for instance F204 unit-mismatch), `lines` is the text of
    the file around the place.
    """

    code: str
    name: str
    mark: Mark
    message: str
    text: str = ""

    def render(self, context: int = 2) -> str:
        """The finding as printed: place, the lines around it, a caret, the message."""
        head = f"{self.mark}  {self.code} {self.name}"
        lines = self.text.split("\n")
        body: list[str] = []
        if self.text and 1 <= self.mark.line <= len(lines):
            first = max(1, self.mark.line - context)
            last = min(len(lines), self.mark.line + context)
            start = max(0, self.mark.column - WIDTH + 20) if self.mark.column > WIDTH else 0
            for number in range(first, last + 1):
                sign = ">" if number == self.mark.line else " "
                shown = harmless(lines[number - 1][start : start + WIDTH])
                body.append(f"{sign} {number:>5} | {shown}".rstrip())
                if number == self.mark.line:
                    body.append(" " * (9 + self.mark.column - start) + "^")
        return "\n".join([head, *body, f"  {harmless(shortened(self.message, LONGEST))}"])


class RuleFileError(FitcheckError):
    """One or more rule files are wrong; holds every problem found in the run."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(
            sorted(set(problems), key=lambda p: (p.mark, p.code, p.message))
        )
        texts = [p.render() for p in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            texts.append(f"... and {len(self.problems) - MAX_SHOWN:,} more problems.")
        super().__init__("\n\n".join(texts))
