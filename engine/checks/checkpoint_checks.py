"""Checks of the checkpoint file of a mode: expressions and sentences read names that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import Problem
from ..field_scope import FieldScope
from ..rules import Rules
from ..suggest import suggest
from ..template import holes
from ..yaml_source import Path, Source
from .flag_checks import parsed


def check_checkpoint(rules: Rules) -> Iterator[Problem]:
    """F201, F211, F220: fields in order, facts that are given, and flags that follow one."""
    facts: dict[str, Any] = {}
    if rules.checkpoint is not None:
        source = rules.checkpoint
        facts = dict(source.data["absent"])
        yield from _expressions(source, set(rules.flags.libraries()))
        given = {*source.data.get("always", ()), *source.data["fields"], *source.data["tensors"]}
        if rules.mode is not None and rules.mode.beside is not None:
            given |= set(rules.mode.beside.facts)
        for name in facts.keys() - given:
            yield from _missing(source, ("absent", name), name, given)
        for name in source.data["tensors"].keys() - facts.keys():
            yield from _missing(source, ("tensors", name), name, facts)
    for name, flag in rules.flags.flags.items():
        if flag.follows is not None and flag.follows not in facts:
            head = rules.mode.formula.source if rules.mode is not None else rules.flags.source
            taken = name in head.data.get("takes", ())
            source = head if taken else rules.flags.source
            place = ("takes" if taken else "flags", name, "follows")
            yield from _missing(source, place, flag.follows, facts)


def _expressions(source: Source, known: set[str]) -> Iterator[Problem]:
    names: dict[str, Any] = dict.fromkeys((*known, "model_type"))
    for name, spec in source.data["fields"].items():
        for key in ("value", "otherwise", "when_null"):
            if isinstance(spec.get(key), str):
                scope = FieldScope({}, {}, {}, dict(names), {})
                yield from parsed(source, ("fields", name, key), spec[key], scope)
        names[name] = None
    scope = FieldScope({}, {}, {}, names, {})
    for index, check in enumerate(source.data.get("checks", ())):
        yield from parsed(source, ("checks", index, "when"), check["when"], scope)
        for hole, _, _ in holes(str(check["says"])):
            if hole not in names:
                mark = source.mark(("checks", index, "says"))
                message = f"`{{{hole}}}` is not known here.{suggest(hole, list(names))}"
                yield source.problem("F211", "bad-sentence", mark, message)


def _missing(source: Source, path: Path, name: str, known: Any) -> Iterator[Problem]:
    message = f"No fact or field `{name}` of the checkpoint file.{suggest(name, list(known))}"
    yield source.problem("F220", "missing-field", source.key_mark(path), message)


CHECKPOINT_CHECKS = (check_checkpoint,)
