"""Checks of architecture files: every expression and sentence reads names that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..architecture import Architecture
from ..errors import Problem
from ..field_scope import FieldScope
from ..rules import Rules
from ..scope import suggest
from ..template import holes
from ..yaml_source import Path
from .flag_checks import parsed

REFUSAL_HOLES = ("name", "key", "model_type")


def check_architectures(rules: Rules) -> Iterator[Problem]:
    """F201, F202, F210, F211."""
    for architecture in rules.architectures:
        try:
            found = list(check_one(architecture))
        except (KeyError, TypeError, AttributeError):
            continue  # its shape was reported
        yield from found


def check_one(architecture: Architecture) -> Iterator[Problem]:
    data, source = architecture.data, architecture.source
    if "refuse" in data:
        yield from sentence(architecture, ("refuse", "says"), REFUSAL_HOLES)
        return
    known: dict[str, Any] = dict.fromkeys(("model_type", *data.get("constants", {})))
    for name, spec in data["fields"].items():
        for key in ("otherwise", "when_null"):
            if key in spec:
                yield from parsed(source, ("fields", name, key), spec[key], scope(known))
        known[name] = None
        if "warn" in spec:
            yield from sentence(architecture, ("fields", name, "warn"), known)
    for index, check in enumerate(data.get("checks", ())):
        yield from parsed(source, ("checks", index, "when"), check["when"], scope(known))
        yield from sentence(architecture, ("checks", index, "says"), known)
    yield from sentence(architecture, ("unverified", "says"), known)
    for index in range(len(data.get("remarks", ()))):
        yield from sentence(architecture, ("remarks", index, "says"), {**known, "key": None})
    for index, group in enumerate(data["layer_groups"]):
        path: Path = ("layer_groups", index)
        yield from parsed(source, (*path, "count"), group["count"], scope(known))
        inner = dict(known)
        if "each" in group:
            inner[group["each"]] = None
        for name, text in group["fields"].items():
            yield from parsed(source, (*path, "fields", name), text, scope(inner))
            inner[name] = None
        for position, module in enumerate(group["modules"]):
            place: Path = (*path, "modules", position)
            keys = [k for k in ("when", "d_in", "d_out") if k in module]
            for key in keys:
                yield from parsed(source, (*place, key), module[key], scope(inner))
            for name, text in module.get("fields", {}).items():
                yield from parsed(source, (*place, "fields", name), text, scope(inner))


def scope(known: dict[str, Any]) -> FieldScope:
    return FieldScope({}, {}, {}, known, {})


def sentence(architecture: Architecture, path: Path, known: Any) -> Iterator[Problem]:
    """F211: the holes of a sentence are names that are there."""
    text: Any = architecture.data
    for part in path:
        text = text[part]
    for hole, _, _ in holes(str(text)):
        if hole not in known:
            source = architecture.source
            yield source.problem(
                "F211",
                "bad-sentence",
                source.mark(path),
                f"`{{{hole}}}` is not known here.{suggest(hole, list(known))}",
            )


ARCHITECTURE_CHECKS = (check_architectures,)
