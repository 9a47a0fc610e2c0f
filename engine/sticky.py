"""Flags that were given earlier, in a session or a saved run, and what is typed over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import InputProblem
from .flags import FlagSet, fill

Given = Mapping[str, Any]  # flag id (or shorthand id) to value


def folded(flags: FlagSet, kept: Given, typed: Given) -> dict[str, Any]:
    """
    What is given after `typed` came on top of `kept`.

    A typed flag replaces the kept one. A typed shorthand replaces what it sets. Where a kept flag
    and a typed one exclude each other, the conflict's `yields` says which kept flag gives way.

    Raises
    ------
    InputProblem
        What is typed is wrong by itself, or does not go with a kept flag that gives no way.
    """
    flags.resolve(typed)
    names = flags.names()
    typed = {names[name]: value for name, value in typed.items() if value is not None}
    replaced = set(typed)
    for short in flags.shorthands.values():
        if typed.get(short.id):
            replaced.update(short.sets)
    rest = {name: value for name, value in kept.items() if name not in replaced}
    while True:
        settings, explicit = flags.settled({**rest, **typed})
        conflict = next(flags.conflicting(settings, explicit), None)
        if conflict is None:
            return {**rest, **typed}
        leaving = [name for name in conflict.yields if name in rest]
        if not leaving:
            raise InputProblem(fill(conflict.says, settings.values))
        rest = {name: value for name, value in rest.items() if name not in leaving}
