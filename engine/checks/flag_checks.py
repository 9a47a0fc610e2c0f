"""Checks of flags.yaml and hints.yaml: defaults, presets, conflicts, changes that can be made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import expression as ex
from ..algebra import EXACT, compile_tree
from ..errors import InputProblem, Problem
from ..flags import Flag
from ..rules import Rules
from ..scope import NameProblem, Scope, suggest
from ..template import holes
from ..yaml_source import Path, Source


def check_flags(rules: Rules) -> Iterator[Problem]:
    """F106, F201, F211: what flags.yaml says of its own flags holds."""
    flags, source = rules.flags, rules.flags.source
    options: dict[str, str] = {}
    for name, flag in flags.flags.items():
        yield from bad_value(source, ("flags", name, "default"), flags.flags, flag, flag.default)
        if flag.group not in flags.groups:
            yield source.problem(
                "F106",
                "bad-flag",
                source.mark(("flags", name, "group")),
                f"`{flag.group}` is not listed under groups.{suggest(flag.group, flags.groups)}",
            )
        if set(options_of(flag)) & set(flags.reserved):
            yield source.problem(
                "F106",
                "bad-flag",
                source.mark(("flags", name, "option")),
                f"{flag.option} is an option of the program itself; use another one.",
            )
        for option in options_of(flag):
            if options.setdefault(option, name) != name:
                yield source.problem(
                    "F106",
                    "bad-flag",
                    source.mark(("flags", name, "option")),
                    f"{option} is the option of `{options[option]}` already.",
                )
        if flag.null_without and flag.null_without not in flags.flags:
            yield unknown(source, ("flags", name, "null_without"), flag.null_without, flags.flags)
    for name, short in flags.shorthands.items():
        for key, value in short.sets.items():
            path: Path = ("shorthands", name, "sets", key)
            if key not in flags.flags:
                yield unknown(source, path, key, flags.flags)
            else:
                yield from bad_value(source, path, flags.flags, flags.flags[key], value)
    for index, conflict in enumerate(flags.conflicts):
        yield from bound(source, ("conflicts", index, "when"), conflict.when, flags.scope())
        for key, names in (("given", conflict.given), ("yields", conflict.yields)):
            for named in names:
                if named not in flags.flags:
                    yield unknown(source, ("conflicts", index, key), named, flags.flags)
        for hole, _, _ in holes(conflict.says):
            if hole not in flags.flags:
                yield source.problem(
                    "F211",
                    "bad-sentence",
                    source.mark(("conflicts", index, "says")),
                    f"`{{{hole}}}` is not a flag.{suggest(hole, flags.flags)}",
                )


def options_of(flag: Flag) -> tuple[str, ...]:
    """Every spelling of a flag on the command line."""
    return (flag.option, *flag.aliases)


def check_hints(rules: Rules) -> Iterator[Problem]:
    """F201, F106: the hints file names quantities, flags and values that exist."""
    source = rules.hints
    if source is None:
        return
    flags = rules.flags.flags
    reads = {f.id: f.per for f in rules.formulas.values()} | dict.fromkeys(rules.broken)
    scope = Scope({}, {}, {}, flags, reads)
    for key in ("price", "fits"):
        if source.data.get(key) not in reads:
            yield unknown(source, (key,), str(source.data.get(key)), reads)
    for path, name in compared(source.data.get("compare", {})):
        if name not in reads:
            yield unknown(source, path, name, reads)
    for part in ("hints", "levers", "recommend"):
        for index, entry in enumerate(source.data.get(part, ())):
            path = (part, index)
            yield from parsed(source, (*path, "when"), entry.get("when", True), scope)
            for name, value in entry.get("change", {}).items():
                where: Path = (*path, "change", name)
                if name not in flags:
                    yield unknown(source, where, name, flags)
                elif flags[name].kind == "integer" and isinstance(value, str):
                    yield from parsed(source, where, value, scope)
                else:
                    yield from bad_value(source, where, flags, flags[name], value)


def compared(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The quantities that a comparison shows, each with its place."""
    for key, value in data.items():
        column = isinstance(value, Mapping)
        path: Path = ("compare", key, "quantity") if column else ("compare", key)
        yield path, str(value["quantity"] if column else value)


def unknown(source: Source, path: Path, name: str, known: Any) -> Problem:
    """F201 for a name that is neither flag nor quantity."""
    return source.problem(
        "F201", "unknown-symbol", source.mark(path), f"`{name}` is not known.{suggest(name, known)}"
    )


def bad_value(source: Source, path: Path, flags: Any, flag: Flag, value: Any) -> Iterator[Problem]:
    """F106 for a value outside the domain of its flag."""
    from ..flags import check_value

    try:
        check_value(flag, value)
    except InputProblem as error:
        yield source.problem("F106", "bad-flag", source.mark(path), str(error))


def parsed(source: Source, path: Path, text: Any, scope: Scope) -> Iterator[Problem]:
    """Problems of an expression in a file that is no formula."""
    try:
        tree = ex.parse(str(text).lower() if isinstance(text, bool) else str(text))
    except ex.ExpressionError as error:
        mark = source.inside(path, error.offset)
        yield source.problem(error.code, error.name, mark, error.message)
        return
    yield from bound(source, path, tree, scope)


def bound(source: Source, path: Path, tree: ex.Node, scope: Scope) -> Iterator[Problem]:
    """F201, F210 for names that cannot be bound."""
    try:
        compile_tree(tree, EXACT, scope.inside(tree))
    except NameProblem as error:
        mark = source.inside(path, error.at)
        yield source.problem(error.code, error.name, mark, error.message)


FLAG_CHECKS = (check_flags, check_hints)
