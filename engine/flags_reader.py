"""From the parsed `flags.yaml` to a `FlagSet`; a mode takes flags of it and adds its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import RuleFileError
from .flags import Conflict, Flag, FlagSet, FromProfile, Shorthand
from .formula import Unparsed
from .record import replace
from .units import Unit, UnitError, Units

if TYPE_CHECKING:
    from .profile import Profile
    from .yaml_source import Source

CHANGED = (
    "default",
    "group",
    "help",
    "values",
    "follows",
)  # what a mode may say anew of a flag that it takes


def read_flags(source: Source, units: Units) -> FlagSet:
    """Read `flags.yaml`; raises `RuleFileError`."""
    return FlagSet(
        own_flags(source, units),
        shorthands(source),
        tuple(conflicts(source)),
        tuple(source.data.get("groups", ())),
        str(source.data["default_card"]),
        source,
        {},
        tuple(source.data.get("reserved", ())),
    )


def flags_of_mode(
    source: Source, units: Units, shared: FlagSet, own: Source | None = None
) -> FlagSet:
    """
    The flags of a mode: those that its file takes, with its defaults, then its own, which may be in
    a file by themselves (`own`).

    A conflict of `flags.yaml` holds here too where the mode has every flag that it speaks of.
    Raises `RuleFileError`.
    """
    flags: dict[str, Flag] = {}
    for name, changes in source.data.get("takes", {}).items():
        if name not in shared.flags:
            raise RuleFileError([unknown_flag(source, name, shared)])
        given = {key: changes[key] for key in CHANGED if key in (changes or {})}
        flags[name] = replace(shared.flags[name], **given)
    own = own or source
    flags |= own_flags(own, units)
    kept = [c for c in shared.conflicts if names_of(c) <= flags.keys()]
    return FlagSet(
        flags,
        shorthands(own),
        (*kept, *conflicts(own)),
        tuple(source.data.get("groups", ())),
        shared.default_card,
        own,
        {},
        shared.reserved,
    )


def names_of(conflict: Conflict) -> set[str]:
    """The flags a conflict speaks of."""
    from . import expression as ex

    return {*conflict.given, *ex.names(conflict.when)}


def unknown_flag(source: Source, name: str, shared: FlagSet) -> Any:
    from .suggest import suggest

    mark = source.key_mark(("takes", name))
    message = f"`{name}` is no flag of flags.yaml.{suggest(name, shared.flags)}"
    return source.problem("F201", "unknown-symbol", mark, message)


def own_flags(source: Source, units: Units) -> dict[str, Flag]:
    """The entries of `flags`; raises `RuleFileError`."""
    flags: dict[str, Flag] = {}
    for name, entry in source.data.get("flags", {}).items():
        kind = entry.get("type", "choice" if "values" in entry or "of" in entry else None)
        if kind not in ("choice", "switch", "integer", "share", "text", "words", "version"):
            raise RuleFileError(
                [
                    source.problem(
                        "F106",
                        "bad-flag",
                        source.key_mark(("flags", name)),
                        f"Flag `{name}` needs `values`, or `type: switch`, `integer`, `share`, "
                        "`text`, `words` or `version`.",
                    )
                ]
            )
        presets = {k: tuple(v) for k, v in entry.get("presets", {}).items()}
        default = entry["default"]
        if isinstance(default, dict):
            default = FromProfile(*str(default["profile"]).split("."))
        elif kind == "share":
            default = Fraction(str(default))
        flags[name] = Flag(
            name,
            kind,
            entry["option"],
            entry["group"],
            entry["help"],
            presets.get(default, default) if kind == "words" else default,
            entry.get("json", name) if entry.get("in_json", True) else None,
            entry.get("null_without"),
            entry.get("values", {}),
            entry.get("inverse", False),
            entry.get("min", 0),
            entry.get("max", 0),
            _unit(source, units, name, entry),
            presets,
            entry.get("short", {}),
            tuple(entry.get("aliases", ())),
            str(entry.get("of", "")),
            bool(entry.get("quiet", False)),
            entry.get("follows"),
        )
    return flags


def with_values_of(flags: FlagSet, profiles: Mapping[str, Sequence[Profile]]) -> FlagSet:
    """The flags, with the values of a choice that the files of a kind of profiles give."""
    found = dict(flags.flags)
    for name, flag in flags.flags.items():
        if flag.of:
            files = [p for p in profiles.get(flag.of, ()) if set(p.matches) == {name}]
            found[name] = replace(flag, values={str(p.matches[name]): p.title for p in files})
    return replace(flags, flags=found)


def shorthands(source: Source) -> dict[str, Shorthand]:
    """The entries of `shorthands`."""
    return {
        n: Shorthand(n, e["option"], e["group"], e["sets"], e["help"])
        for n, e in source.data.get("shorthands", {}).items()
    }


def conflicts(source: Source) -> list[Conflict]:
    """The entries of `conflicts`; raises `RuleFileError`."""
    found = []
    for index, entry in enumerate(source.data.get("conflicts", ())):
        when: Any = Unparsed(source, ("conflicts", index, "when"), entry["when"])
        when.parse()  # said here, where every problem of the file is
        given = tuple(entry.get("given", ()))
        yields = tuple(entry.get("yields", ()))
        found.append(Conflict(entry["id"], given, when, entry["when"], entry["says"], yields))
    return found


def _unit(source: Source, units: Units, name: str, entry: Mapping[str, Any]) -> Unit | None:
    if "unit" not in entry:
        return None
    try:
        return units.parse(entry["unit"])
    except UnitError as error:
        mark = source.mark(("flags", name, "unit"))
        raise RuleFileError([source.problem("F205", "unknown-unit", mark, f"{error}.")]) from None
