"""From the parsed `flags.yaml` to a `FlagSet`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import RuleFileError
from .flags import Conflict, Flag, FlagSet, Shorthand
from .formula import Unparsed
from .units import Unit, UnitError, Units

if TYPE_CHECKING:
    from .yaml_source import Source


def read_flags(source: Source, units: Units) -> FlagSet:
    """Read `flags.yaml`; raises `RuleFileError`."""
    data = source.data
    flags: dict[str, Flag] = {}
    for name, entry in data["flags"].items():
        kind = entry.get("type", "choice" if "values" in entry else None)
        if kind not in ("choice", "switch", "integer", "words", "version"):
            raise RuleFileError(
                [
                    source.problem(
                        "F106",
                        "bad-flag",
                        source.key_mark(("flags", name)),
                        f"Flag `{name}` needs `values`, or `type: switch`, `integer`, `words` or "
                        "`version`.",
                    )
                ]
            )
        presets = {k: tuple(v) for k, v in entry.get("presets", {}).items()}
        default = entry["default"]
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
        )
    shorthands = {
        n: Shorthand(n, e["option"], e["group"], e["sets"], e["help"])
        for n, e in data.get("shorthands", {}).items()
    }
    conflicts = []
    for index, entry in enumerate(data.get("conflicts", ())):
        when: Any = Unparsed(source, ("conflicts", index, "when"), entry["when"])
        when.parse()  # said here, where every problem of the file is
        given = tuple(entry.get("given", ()))
        conflicts.append(Conflict(entry["id"], given, when, entry["when"], entry["says"]))
    return FlagSet(
        flags,
        shorthands,
        tuple(conflicts),
        tuple(data.get("groups", ())),
        str(data["default_card"]),
        source,
        {},
    )


def _unit(source: Source, units: Units, name: str, entry: Mapping[str, Any]) -> Unit | None:
    if "unit" not in entry:
        return None
    try:
        return units.parse(entry["unit"])
    except UnitError as error:
        mark = source.mark(("flags", name, "unit"))
        raise RuleFileError([source.problem("F205", "unknown-unit", mark, f"{error}.")]) from None
