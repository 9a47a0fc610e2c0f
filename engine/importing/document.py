"""A configuration file or command as flat keys with their places: `fsdp_config.offload` at 12:3."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ..errors import InputProblem, Mark, Problem
from ..record import record

MAX_BYTES = 1_000_000  # a training configuration has a few kB
MAX_KEYS = 20_000  # aliases may make much of little
MAX_DEPTH = 40


@record
class Item:
    """One key: its dotted name, its plain value, and where it stands (from 1; 0 for nowhere)."""

    key: str
    value: Any
    line: int
    column: int
    path: str = ""  # of the file, where it is one that another names


@record(identity=True)
class Document:
    """A file, or a command whose options are its keys; `items` by dotted key, parents too."""

    path: str
    text: str
    items: Mapping[str, Item]

    def place(self, key: str) -> Mark:
        """Where a key stands, or the start of the file."""
        item = self.items.get(key)
        return Mark(self.path, item.line if item else 1, item.column if item else 1)

    def refused(self, key: str, says: str) -> InputProblem:
        """What is wrong with the value of a key, with the lines around it."""
        return shown(Problem("", "", self.place(key), says, self.text))


def shown(problem: Problem) -> InputProblem:
    """A problem as a person reads it: place and message first, then the lines with a caret."""
    lines = problem.render().split("\n")
    return InputProblem("\n".join([f"{problem.mark}: {problem.message}", "", *lines[1:-1]]))


def read_document(path: str) -> Document:
    """
    Read a YAML or JSON file.

    Raises
    ------
    InputProblem
        It cannot be read, or is no mapping of keys; the message has file, line and column.
    """
    if not os.path.isfile(path):
        what = "this is a folder" if os.path.isdir(path) else "there is no such file"
        raise InputProblem(f"{path}: {what}.")
    try:
        if os.stat(path).st_size > MAX_BYTES:
            raise InputProblem(f"{path}: larger than {MAX_BYTES:,} bytes, so no configuration.")
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1).decode("utf-8-sig")
    except OSError as error:
        raise InputProblem(f"{path}: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise InputProblem(f"{path}: no UTF-8 text (byte {error.start}).") from None
    if path.endswith(".json"):
        check_json(path, text)
    return parse(path, text)


def check_json(path: str, text: str) -> None:
    """Raise `InputProblem` for text that is no JSON; YAML would take more."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        mark = Mark(path, error.lineno, error.colno)
        raise shown(Problem("", "", mark, f"no JSON: {error.msg}.", text)) from None
    except RecursionError:
        raise InputProblem(f"{path}: nested too deeply.") from None


def parse(path: str, text: str) -> Document:
    """The keys of YAML text (JSON is part of it); raises `InputProblem`."""
    items: dict[str, Item] = {}
    try:
        loader = yaml.SafeLoader(text.replace("\t", " ") if path.endswith(".json") else text)
        node = loader.get_single_node()
        if isinstance(node, yaml.MappingNode):
            for item in walked(loader, node, "", 0):
                items[item.key] = item
                if len(items) > MAX_KEYS:
                    raise InputProblem(f"{path}: more than {MAX_KEYS:,} keys.")
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        mark = Mark(path, at.line + 1 if at else 1, at.column + 1 if at else 1)
        says = f"not readable as YAML: {error.problem or error.context}."
        raise shown(Problem("", "", mark, says, text)) from None
    except InputProblem:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = (str(error).splitlines() or ["nested too deeply"])[0]
        raise InputProblem(f"{path}: not readable as YAML: {first}.") from None
    if not isinstance(node, yaml.MappingNode):
        raise InputProblem(f"{path}: no mapping of keys to values, so no training configuration.")
    return Document(path, text, items)


def walked(
    loader: yaml.SafeLoader, node: yaml.MappingNode, before: str, depth: int
) -> Iterator[Item]:
    """Every key below a node, a parent before its children; lists are values."""
    if depth > MAX_DEPTH:
        raise yaml.YAMLError("nested too deeply")
    loader.flatten_mapping(node)
    for key, value in node.value:
        name = f"{before}{loader.construct_object(key, deep=True)}"
        at = key.start_mark
        nested = isinstance(value, yaml.MappingNode)
        yield Item(name, loader.construct_object(value, deep=True), at.line + 1, at.column + 1)
        if nested:
            yield from walked(loader, value, f"{name}.", depth + 1)
