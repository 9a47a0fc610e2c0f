"""Checks of architecture files: every expression and sentence reads names that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..architecture import Architecture
from ..architecture_expressions import BUILT_IN, Placed, expressions
from ..composing import GROUPS
from ..errors import Problem, RuleFileError
from ..field_scope import FieldScope
from ..rules import Rules
from ..scope import suggest
from ..template import holes
from ..versions import parse_bounds
from ..yaml_source import Path
from .flag_checks import parsed

PART_PATH = 5  # section, group, modules, number, key
REFUSAL_HOLES = ("name", "key", "model_type")


def check_architectures(rules: Rules) -> Iterator[Problem]:
    """F201, F202, F210, F211, F219."""
    seen: set[tuple[str, str]] = set()  # a block is used by many files and said to be wrong once
    for architecture in rules.architectures:
        try:
            found = list(check_one(rules, architecture))
        except RuleFileError as error:
            found = list(error.problems)
        except (KeyError, TypeError, AttributeError):
            continue  # its shape was reported
        for problem in found:
            if (key := (str(problem.mark), problem.message)) not in seen:
                seen.add(key)
                yield problem


def check_one(rules: Rules, architecture: Architecture) -> Iterator[Problem]:
    if "refuse" in architecture.own:
        yield from sentence(architecture, ("refuse", "says"), REFUSAL_HOLES)
        return
    yield from absent(rules, architecture)
    data = architecture.data
    outside = set(rules.flags.libraries())
    if "text" in data:  # the file of the text part has been read before
        for other in rules.architectures:
            outside |= set(other.own.get("fields", {})) | set(other.own.get("constants", {}))
    for placed in expressions(data, outside):
        source, place = architecture.home(placed.path)
        yield from parsed(source, place, placed.text, scope(dict.fromkeys(placed.names)))
        if placed.path[-1] in ("d_out", "count") and len(placed.path) == PART_PATH:
            yield from part_names(architecture, placed)
    known = dict.fromkeys((*BUILT_IN, *outside, *data.get("constants", {})))
    for name, spec in data.get("fields", {}).items():
        known[name] = None
        if "warn" in spec:
            yield from sentence(architecture, ("fields", name, "warn"), known)
    for index in range(len(data.get("checks", ()))):
        yield from sentence(architecture, ("checks", index, "says"), known)
    for kind in data.get("paths", ()):
        yield from sentence(architecture, ("paths", kind), known)
    for kind in GROUPS:
        for index, group in enumerate(data.get(kind, ())):
            if "path" in group:
                yield from sentence(architecture, (kind, index, "path"), known)
    if "defaults" in data:
        yield from sentence(architecture, ("defaults", "says"), {"values": None})
        every = {name for other in rules.architectures for name in other.own.get("fields", {})}
        for index, name in enumerate(data["defaults"]["of"]):
            if name not in every:
                source, place = architecture.home(("defaults", "of", index))
                message = f"No file has a field `{name}`.{suggest(name, sorted(every))}"
                yield source.problem("F201", "unknown-symbol", source.mark(place), message)
    if "unverified" in data:
        yield from sentence(architecture, ("unverified", "says"), known)
    for index in range(len(data.get("remarks", ()))):
        yield from sentence(architecture, ("remarks", index, "says"), {**known, "key": None})


def absent(rules: Rules, architecture: Architecture) -> Iterator[Problem]:
    """F108, F201: types of this file that versions of known libraries have no class of."""
    source, kinds = architecture.source, architecture.own.get("matches", {}).get("model_type", ())
    for kind, libraries in architecture.own.get("absent", {}).items():
        place = source.key_mark(("absent", kind))
        if kind not in kinds:
            message = f"This file does not claim model_type `{kind}`.{suggest(kind, kinds)}"
            yield source.problem("F108", "bad-value", place, message)
        for library, bounds in libraries.items():
            known = rules.flags.libraries()
            if library not in known:
                message = f"`{library}` is no version flag.{suggest(library, known)}"
                yield source.problem("F201", "unknown-symbol", place, message)
            try:
                parse_bounds(bounds)
            except ValueError as error:
                yield source.problem("F108", "bad-value", place, f"{error}.")


def part_names(architecture: Architecture, placed: Placed) -> Iterator[Problem]:
    """F211: the holes in the name and kind of a module or parameter are names that are there."""
    section, group, kind, number, _ = placed.path
    entry = architecture.data[str(section)][group][kind][number]
    for key in ("name", "kind", "part"):
        if "{" in str(entry.get(key, "")):
            path = (section, group, kind, number, key)
            yield from sentence(architecture, path, dict.fromkeys(placed.names))


def scope(known: dict[str, Any]) -> FieldScope:
    return FieldScope({}, {}, {}, known, {})


def sentence(architecture: Architecture, path: Path, known: Any) -> Iterator[Problem]:
    """F211: the holes of a sentence are names that are there; a check may have expressions."""
    text: Any = architecture.own if path[0] == "refuse" else architecture.data
    for part in path:
        text = text[part]
    source, place = architecture.home(path)
    for hole, _, _ in holes(str(text)):
        if path[0] == "checks" and not hole.isidentifier():
            yield from parsed(source, place, hole, scope(known))
        elif hole not in known:
            yield source.problem(
                "F211",
                "bad-sentence",
                source.mark(place),
                f"`{{{hole}}}` is not known here.{suggest(hole, list(known))}",
            )


ARCHITECTURE_CHECKS = (check_architectures,)
