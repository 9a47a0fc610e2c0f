"""Rule files as plain data, with the line and column of every key and value.

Built from the parser's events, so nesting is bounded and nothing is recursive: YAML tags, anchors
and aliases are refused, only `true` and `false` are booleans, decimals are exact fractions, and a
duplicate key is an error.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from typing import Any, cast

import yaml

from .errors import Mark, Problem, RuleFileError
from .record import record

MAX_BYTES = 1_000_000
MAX_DEPTH = 24
MAX_NODES = 50_000

_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,2}(_[0-9]{3})+|[1-9][0-9]{0,39})")
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]{0,39})\.[0-9]{1,40}")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Path = tuple[str | int, ...]


@record
class Source:
    """One parsed file.

    `data` is dict / list / str / int / Fraction / bool / None; `marks` maps the path of every value
    to its place and `key_marks` the path of every mapping key.
    """

    path: str
    text: str
    data: Any
    marks: dict[Path, Mark]
    key_marks: dict[Path, Mark]
    plain: frozenset[Path]

    def mark(self, path: Path = ()) -> Mark:
        """The place of the value at `path`, or of the nearest value above it."""
        while path not in self.marks and path:
            path = path[:-1]
        return self.marks.get(path, Mark(self.path, 1, 1))

    def key_mark(self, path: Path) -> Mark:
        """The place of the key at `path`, or of the nearest value above it."""
        return self.key_marks.get(path) or self.mark(path)

    def inside(self, path: Path, offset: int) -> Mark:
        """The place `offset` characters into the scalar at `path` (one-line scalars only)."""
        mark = self.mark(path)
        if path in self.plain:
            return Mark(mark.path, mark.line, mark.column + offset)
        return mark

    def problem(self, code: str, name: str, mark: Mark, message: str) -> Problem:
        """A `Problem` of this file with its text attached."""
        return Problem(code, name, mark, message, self.text)


def scalar(text: str) -> str | int | Fraction | bool | None:
    """The value of an unquoted YAML scalar; anything unusual stays text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    return text


class _Builder:
    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.marks: dict[Path, Mark] = {}
        self.key_marks: dict[Path, Mark] = {}
        self.plain: set[Path] = set()
        self.problems: list[Problem] = []
        self.stack: list[list[Any]] = []  # [container, path, pending key or next index]
        self.root: Any = None
        self.nodes = 0

    def fail(self, code: str, name: str, mark: Mark, message: str) -> None:
        self.problems.append(Problem(code, name, mark, message, self.text))

    def stop(self, code: str, name: str, mark: Mark, message: str) -> RuleFileError:
        self.fail(code, name, mark, message)
        return RuleFileError(self.problems)

    def place(self, event: Any) -> Mark:
        return Mark(self.path, event.start_mark.line + 1, event.start_mark.column + 1)

    def add(self, value: Any, event: Any) -> Path:
        """Put `value` where the stack points; returns its path."""
        mark = self.place(event)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.stop("F105", "too-large", mark, f"More than {MAX_NODES:,} values in a file.")
        if not self.stack:
            self.root = value
            self.marks[()] = mark
            return ()
        frame = self.stack[-1]
        container, parent, slot = frame
        if isinstance(container, list):
            path = (*parent, len(container))
            container.append(value)
        else:
            path = (*parent, slot)
            if slot not in container:  # a duplicate was reported when its key was read
                container[slot] = value
            frame[2] = None
        self.marks.setdefault(path, mark)
        return path

    def key(self, event: Any) -> bool:
        """Take the event as a mapping key if one is due."""
        if (
            not self.stack
            or not isinstance(self.stack[-1][0], dict)
            or self.stack[-1][2] is not None
        ):
            return False
        frame, mark = self.stack[-1], self.place(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise self.stop("F104", "bad-key", mark, "A key has to be a plain word.")
        name = event.value
        path = (*frame[1], name)
        if name in frame[0]:
            first = self.key_marks[path].line
            where = f" under {frame[1][-1]}" if frame[1] else ""
            self.fail(
                "F102",
                "duplicate-key",
                mark,
                f"`{name}` appears twice{where}; the first is on line {first}. Keep one of them.",
            )
        else:
            self.key_marks[path] = mark
        frame[2] = name
        return True

    def run(self) -> Any:
        documents = 0
        for event in yaml.parse(self.text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.stop(
                        "F104",
                        "two-documents",
                        self.place(event),
                        "One file holds one document; remove the `---` line.",
                    )
            elif isinstance(event, yaml.AliasEvent):
                raise self.stop(
                    "F104",
                    "alias",
                    self.place(event),
                    f"`*{event.anchor}`: aliases are not read. Write the value out.",
                )
            elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
                self.node(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
        if self.problems:
            raise RuleFileError(self.problems)
        return self.root

    def node(self, event: Any) -> None:
        mark = self.place(event)
        if event.anchor is not None:
            raise self.stop(
                "F104",
                "anchor",
                mark,
                f"`&{event.anchor}`: anchors are not read. Write the value out.",
            )
        if event.tag is not None and event.tag != "!":
            raise self.stop(
                "F104", "tag", mark, f"`{event.tag}`: YAML tags are not read. Remove it."
            )
        if self.key(event):
            return
        if isinstance(event, yaml.ScalarEvent):
            unquoted = not event.style
            path = self.add(scalar(event.value) if unquoted else event.value, event)
            start, end = cast(Any, event.start_mark), cast(Any, event.end_mark)
            if unquoted and start.line == end.line:
                self.plain.add(path)
            return
        container: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        path = self.add(container, event)
        if len(self.stack) >= MAX_DEPTH:
            raise self.stop("F105", "too-deep", mark, f"Nested deeper than {MAX_DEPTH} levels.")
        self.stack.append([container, path, None])


def parse(path: str, text: str) -> Source:
    """Parse the text of one rule file; raises `RuleFileError` with every problem found."""
    builder = _Builder(path, text)
    try:
        data = builder.run()
    except yaml.MarkedYAMLError as error:
        at = cast(Any, error.problem_mark or error.context_mark)
        mark = Mark(path, at.line + 1, at.column + 1) if at else Mark(path, 1, 1)
        builder.fail("F100", "not-yaml", mark, f"Not readable as YAML: {error.problem}.")
        raise RuleFileError(builder.problems) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        builder.fail("F100", "not-yaml", Mark(path, 1, 1), f"Not readable as YAML: {reason}.")
        raise RuleFileError(builder.problems) from None
    return Source(path, text, data, builder.marks, builder.key_marks, frozenset(builder.plain))


def read(file: str, shown: str | None = None) -> Source:
    """Read and parse one rule file; `shown` is the name used in messages (default: the path)."""
    path = shown or file
    start = Mark(path, 1, 1)
    try:
        if os.stat(file).st_size > MAX_BYTES:
            raise RuleFileError(
                [
                    Problem(
                        "F105",
                        "too-large",
                        start,
                        f"Larger than {MAX_BYTES:,} bytes; a rule file is small.",
                    )
                ]
            )
        with open(file, "rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"Cannot be read: {error.strerror or error}."
        raise RuleFileError([Problem("F100", "unreadable", start, message)]) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"Not UTF-8 text (byte {error.start}). Save the file as UTF-8."
        raise RuleFileError([Problem("F100", "not-utf-8", start, message)]) from None
    return parse(path, text)
