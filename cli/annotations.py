"""Lines by which a GitHub workflow marks places of files."""

from __future__ import annotations

# https://docs.github.com/actions/reference/workflow-commands-for-github-actions
DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
PROPERTY = {**DATA, ":": "%3A", ",": "%2C"}


def annotation(level: str, file: str, line: int, title: str, says: str) -> str:
    """One workflow command; `level` is error, warning or notice, `line` counts from 1."""
    found = {"file": file, "line": str(max(line, 1)), "title": title}
    properties = ",".join(f"{name}={escaped(value, PROPERTY)}" for name, value in found.items())
    return f"::{level} {properties}::{escaped(says, DATA)}"


def escaped(text: str, signs: dict[str, str]) -> str:
    """The text with the signs that would end a command written out; the percent sign first."""
    for sign, code in signs.items():
        text = text.replace(sign, code)
    return text
