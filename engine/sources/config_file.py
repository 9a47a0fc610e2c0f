"""Reads one config.json strictly: a bounded file of plain JSON with an object at its root.

Python's own reader accepts more than JSON (NaN, a key given twice) and fails on some input with
errors that say nothing to a user (nesting, very long integers). Here each is one sentence.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import stat
from collections.abc import Iterator

from ..errors import InputProblem
from .names import quoted

MAX_BYTES = 10_000_000  # published config.json files are a few kB
MAX_DEPTH = 64  # levels of objects and lists; published files have fewer than ten
MAX_DIGITS = 300  # a longer integer does not fit into a floating-point number


class _Fault(Exception):
    """Why a file is not accepted; the caller adds which file it is."""


def read_config(path: str, label: str, most: int = MAX_BYTES) -> dict[str, object]:
    """
    The object in the file at `path` of at most `most` bytes.

    Raises InputProblem "Could not read <label>: ..." otherwise.
    """
    try:
        return _parse(_read(path, most))
    except _Fault as fault:
        raise InputProblem(f"Could not read {label}: {fault}.") from None


def _read(path: str, most: int) -> bytes:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise _Fault("it is a folder, not a file")
        if not stat.S_ISREG(mode):  # opening a pipe would wait for a writer that may never come
            raise _Fault("it is a pipe or a device, not a regular file")
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        missing = "it is a link to a file that does not exist"
        raise _Fault(missing if os.path.islink(path) else "there is no such file") from None
    except PermissionError:
        raise _Fault("permission denied") from None
    except OSError as error:
        raise _Fault(error.strerror or type(error).__name__) from None
    except ValueError:  # a null character in the path
        raise _Fault("no file can have this name") from None
    if len(data) > most:
        raise _Fault(f"it is larger than {most // 1_000_000} MB, which no config.json is")
    return data


def _parse(data: bytes) -> dict[str, object]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Fault(f"it is not UTF-8 text (byte {error.start + 1})") from None
    if not text.strip():
        raise _Fault("it is empty")
    try:
        root = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except json.JSONDecodeError as error:
        raise _Fault(
            f"it is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from None
    except RecursionError:
        raise _Fault(_too_deep()) from None
    if not isinstance(root, dict):
        kind = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
        raise _Fault(f"its root is {kind.get(type(root), 'a number')}, not a JSON object {{...}}")
    _inspect(root)
    return root


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _Fault(f"the key {quoted(key)} is given twice")
        result[key] = value
    return result


def _constant(text: str) -> object:
    raise _Fault(f"it holds {text}, which is not a JSON number")


def _integer(text: str) -> int:
    digits = len(text.lstrip("-"))
    if digits > MAX_DIGITS:
        raise _Fault(f"it holds an integer of {digits:,} digits ({text[:20]}...)")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Fault(f"it holds {quoted(text[:40])}, a number too large to represent")
    return value


def _too_deep() -> str:
    return f"its objects and lists are nested more than {MAX_DEPTH} levels deep"


def _inspect(root: object) -> None:
    """Bounds the depth and refuses text that can't be written out again (half a \\ud83d pair)."""
    levels: list[Iterator[object]] = [iter((root,))]
    while levels:
        for value in levels[-1]:
            if isinstance(value, str):
                if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                    raise _Fault(f"it holds a broken Unicode escape in {quoted(value)}")
            elif isinstance(value, (dict, list)):
                if len(levels) > MAX_DEPTH:
                    raise _Fault(_too_deep())
                inner = itertools.chain(value, value.values()) if isinstance(value, dict) else value
                levels.append(iter(inner))
                break
        else:
            levels.pop()
