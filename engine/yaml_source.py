"""Rule files as plain data, with the line and column of every key and value.

YAML tags, anchors and aliases are refused, only `true` and `false` are booleans, decimals are exact
fractions, nesting is bounded, and a duplicate key is an error. Places are looked up in the parser's
nodes when they are asked for.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from typing import Any

import yaml

from .errors import Mark, Problem, RuleFileError
from .yaml_problems import MAX_DEPTH, Path as Path, has_controls, loader, verify

MAX_BYTES = 100_000  # the largest bundled file has a tenth of it
MANY = 1_000  # brackets; so many may be nested deeper than a parser in plain Python can bear
LONG = 10_000  # characters; a file this long may have more values than are allowed

_INTEGER = r"[+-]?(?:0|[1-9][0-9]{0,2}(?:_[0-9]{3})+|[1-9][0-9]{0,39})"
_DECIMAL = r"[+-]?(?:0|[1-9][0-9]{0,39})\.[0-9]{1,40}"
# What could be an anchor, an alias, a tag or a directive; the events then tell.
_SPECIAL = r"(?:^|(?<=[\s\[{,:?-]))(?:[&*](?![\s*=])|!(?!=\s))|^%"
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class Source:
    """
    One parsed file.

    `data` is dict / list / str / int / Fraction / bool / None. Paths lead from the root of the file
    to a value: `("cases", 0, "expr")`.
    """

    def __init__(self, path: str, text: str, data: Any, root: Any) -> None:
        self.path, self.text, self.data, self._root = path, text, data, root

    def _walk(self, path: Path) -> tuple[Any, Any]:
        """(key node, value node) of the entry at `path`, or of the nearest one above it."""
        key, node = None, self._root
        for part in path:
            entry = _entry(node, part)
            if entry is None:
                break
            key, node = entry
        return key, node

    def _place(self, node: Any) -> Mark:
        if node is None:
            return Mark(self.path, 1, 1)
        return Mark(self.path, node.start_mark.line + 1, node.start_mark.column + 1)

    def mark(self, path: Path = ()) -> Mark:
        """The place of the value at `path`, or of the nearest value above it."""
        return self._place(self._walk(path)[1])

    def key_mark(self, path: Path) -> Mark:
        """The place of the key at `path`, or of the nearest value above it."""
        key, node = self._walk(path)
        return self._place(node if key is None else key)

    def inside(self, path: Path, offset: int) -> Mark:
        """The place `offset` characters into the scalar at `path` (unquoted one-liners only)."""
        node = self._walk(path)[1]
        mark = self._place(node)
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        if plain and node.start_mark.line == node.end_mark.line:
            return Mark(mark.path, mark.line, mark.column + offset)
        return mark

    def problem(self, code: str, name: str, mark: Mark, message: str) -> Problem:
        """A `Problem` of this file with its text attached."""
        return Problem(code, name, mark, message, self.text)


def _entry(node: Any, part: str | int) -> tuple[Any, Any] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((k, v) for k, v in node.value if k.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return None, node.value[part]
    return None


def scalar(text: str) -> str | int | Fraction | bool | None:
    """The value of an unquoted YAML scalar; anything unusual stays text."""
    if text[:1].isalpha():
        return _WORDS.get(text, text)
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(_INTEGER, text):
        return int(text.replace("_", ""))
    if re.fullmatch(_DECIMAL, text):
        return Fraction(text)
    return text


class _Unusual(Exception):
    """The file is not plainly fine; `yaml_problems.verify` says what it is."""


def _convert(node: Any, depth: int = 0) -> Any:
    """Nodes to plain data."""
    if isinstance(node, yaml.ScalarNode):
        if node.style:
            if has_controls(node.value):
                raise _Unusual
            return node.value
        return scalar(node.value)
    if depth >= MAX_DEPTH:
        raise _Unusual
    if isinstance(node, yaml.SequenceNode):
        return [_convert(item, depth + 1) for item in node.value]
    found = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _Unusual
        found[key.value] = _convert(value, depth + 1)
    if len(found) != len(node.value):
        raise _Unusual  # a duplicate key
    return found


def parse(path: str, text: str) -> Source:
    """Parse the text of one rule file; raises `RuleFileError` with every problem found."""
    crowded = text.count("[") + text.count("{") > MANY
    if len(text) > LONG or crowded or re.search(_SPECIAL, text, re.MULTILINE):
        verify(path, text)
    try:
        root = yaml.compose(text, Loader=loader())
        return Source(path, text, None if root is None else _convert(root), root)
    except (yaml.YAMLError, _Unusual, RecursionError):
        verify(path, text)
    message = "Not readable as YAML."
    raise RuleFileError([Problem("F100", "not-yaml", Mark(path, 1, 1), message, text)])


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
