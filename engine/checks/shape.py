"""The shape of rule files: JSON Schemas, with their errors in the file's own words."""

from __future__ import annotations

import difflib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..errors import Problem, shortened
from ..yaml_problems import MAX_PROBLEMS
from ..yaml_source import Path, Source

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "schemas")
LONGEST = 80  # characters of a value that a message repeats
_NOUNS = {
    "object": "a mapping (`key: value` lines)",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}


@lru_cache(maxsize=1)
def _schemas() -> Mapping[str, Any]:
    found = {}
    for name in sorted(os.listdir(_FOLDER)):
        with open(os.path.join(_FOLDER, name), encoding="utf-8") as handle:
            found[name.rsplit(".", 1)[0]] = _inline(json.load(handle))
    return found


def _inline(schema: Any) -> Any:
    """References into formula.json replaced by what they name, so that a schema stands alone."""
    if isinstance(schema, dict):
        reference = schema.get("$ref", "")
        if reference.startswith("formula.json#/$defs/"):
            with open(os.path.join(_FOLDER, "formula.json"), encoding="utf-8") as handle:
                definitions = json.load(handle)["$defs"]
            return _resolve(definitions[reference.rsplit("/", 1)[1]], definitions)
        return {k: _inline(v) for k, v in schema.items()}
    return [_inline(v) for v in schema] if isinstance(schema, list) else schema


def _resolve(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, dict):
        reference = schema.get("$ref", "")
        if reference.startswith("#/$defs/"):
            return _resolve(definitions[reference.rsplit("/", 1)[1]], definitions)
        return {k: _resolve(v, definitions) for k, v in schema.items()}
    return [_resolve(v, definitions) for v in schema] if isinstance(schema, list) else schema


@lru_cache(maxsize=16)
def _validator(kind: str) -> Any:
    import jsonschema
    from jsonschema import validators

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine(
        "number", lambda _, v: isinstance(v, (int, Fraction)) and not isinstance(v, bool)
    )
    extend: Any = validators.extend  # untyped in its stubs
    return extend(base, type_checker=checker)(_schemas()[kind])


def check_shape(source: Source, kind: str) -> Iterator[Problem]:
    """The keys and values that do not belong where they stand; of many, the first."""
    errors = _validator(kind).iter_errors(source.data)
    found = itertools.chain.from_iterable(_translate(source, error) for error in errors)
    return itertools.islice(found, MAX_PROBLEMS)


def _translate(source: Source, error: Any) -> Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    noun = error.schema.get("title", "") if isinstance(error.schema, dict) else ""
    where = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}" if noun else "this place"
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        for key in error.instance:
            if key not in allowed:
                near = difflib.get_close_matches(str(key)[:LONGEST], allowed, 1)
                hint = f"Did you mean `{near[0]}`?" if near else f"It has {', '.join(allowed)}."
                if error.instance[key] is None:
                    hint = "Did a comma cut a text in two? Put the text in quotes."
                yield source.problem(
                    "F101",
                    "unknown-key",
                    source.key_mark((*path, key)),
                    f"{_said(key)} is not a field of {where}. {hint}",
                )
        return
    if error.validator == "required":
        missing = error.message.split("'")[1]
        yield source.problem(
            "F107", "missing-key", source.key_mark(path), f"`{missing}` is missing in {where}."
        )
        return
    name = f"`{path[-1]}`" if path and isinstance(path[-1], str) else "This"
    message = f"{name}: {error.message if len(error.message) < 500 else 'not allowed here'}."
    if error.validator == "type":
        kinds = error.validator_value
        wanted = " or ".join(
            _NOUNS.get(k, k) for k in ([kinds] if isinstance(kinds, str) else kinds)
        )
        message = f"{name} has to be {wanted}, not {_said(error.instance)}."
    elif error.validator == "enum":
        words = [str(v).lower() if isinstance(v, bool) else str(v) for v in error.validator_value]
        near = difflib.get_close_matches(str(error.instance)[:LONGEST], words, 1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        message = f"{name} is {_said(error.instance)}; it can be {', '.join(words)}.{hint}"
    elif error.validator == "minItems":
        message = f"{name} is empty; it needs at least one entry."
    elif error.validator == "pattern":
        message = f"{name} is {_said(error.instance)}, which is not of the expected form."
    elif error.validator in ("oneOf", "anyOf"):
        message = error.schema.get("$comment", message)
    yield source.problem("F108", "bad-value", source.mark(path), message)


def _said(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _NOUNS["object" if isinstance(value, dict) else "array"]
    if isinstance(value, bool):
        return str(value).lower()
    return "empty" if value is None else f"`{shortened(str(value), LONGEST)}`"
