"""Checks of importer files: what they set are flags, with values that the flags can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InputProblem, Problem, RuleFileError
from ..flags import FlagSet
from ..importing.mapping import Importer, mappings_of
from ..rules import Rules
from ..suggest import suggest


def check_importers(rules: Rules) -> Iterator[Problem]:
    """F106, F201: every flag exists and can have the value; `extends` and `like` lead somewhere."""
    if rules.mode is not None:
        return  # their flags are those of training
    try:
        known = mappings_of(rules.roots)
    except RuleFileError as error:
        yield from error.problems
        return
    except (KeyError, TypeError, ValueError):
        return  # the shape is wrong, which is said elsewhere
    overlaid = bool(rules.overlays)
    for importer in known.values():
        if importer.overlay or not overlaid:
            yield from check_importer(rules.flags, importer)


def check_importer(flags: FlagSet, importer: Importer) -> Iterator[Problem]:
    """One file, without what it extends."""
    source, data = importer.source, importer.source.data
    yield from values(flags, importer, ("defaults",), data.get("defaults", {}))
    for name, entry in data.get("keys", {}).items():
        path: tuple[str | int, ...] = ("keys", name)
        like = entry.get("like")
        if like is not None and like not in importer.keys:
            says = f"`{like}` is no key of this file.{suggest(str(like), importer.keys)}"
            yield source.problem("F201", "unknown-symbol", source.mark((*path, "like")), says)
        flag = entry.get("sets")
        if flag is not None:
            yield from values(flags, importer, path, {}, str(flag))
        for text, value in entry.get("values", {}).items():
            yield from effect(flags, importer, (*path, "values", text), value, flag)
        if isinstance(entry.get("others"), Mapping):
            yield from effect(flags, importer, (*path, "others"), entry["others"], flag)
        yield from named_flags(flags, importer, path, entry)
    for number, rule in enumerate(data.get("rules", ())):
        yield from values(flags, importer, ("rules", number, "sets"), rule.get("sets", {}))
        yield from named_flags(flags, importer, ("rules", number), rule)


def effect(
    flags: FlagSet, importer: Importer, path: tuple[str | int, ...], value: Any, flag: str | None
) -> Iterator[Problem]:
    """What a value means: that of the entry's flag, or an effect of its own."""
    if not isinstance(value, Mapping):
        if value is not None:
            yield from values(flags, importer, path, {flag or "": value})
        return
    sets = value.get("sets", {})
    if not isinstance(sets, Mapping):
        sets = {flag or "": sets}
    yield from values(flags, importer, path, sets)
    yield from named_flags(flags, importer, path, value)


def values(
    flags: FlagSet,
    importer: Importer,
    path: tuple[str | int, ...],
    sets: Mapping[str, Any],
    flag: str | None = None,
) -> Iterator[Problem]:
    """Problems of flags and of the values that they are set to."""
    source = importer.source
    for name in [*sets, *([flag] if flag else [])]:
        if name not in flags.flags:
            says = f"`{name}` is no flag.{suggest(name, flags.flags)}"
            yield source.problem("F201", "unknown-symbol", source.mark(path), says)
        elif name in sets:
            try:
                flags.check(flags.flags[name], sets[name])
            except InputProblem as problem:
                yield source.problem("F106", "bad-flag", source.mark(path), str(problem))


def named_flags(
    flags: FlagSet, importer: Importer, path: tuple[str | int, ...], entry: Mapping[str, Any]
) -> Iterator[Problem]:
    for key in ("within", "settled"):
        if key in entry:
            yield from values(flags, importer, (*path, key), {}, str(entry[key]))


IMPORTER_CHECKS = (check_importers,)
