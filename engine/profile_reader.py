"""From a parsed file of profiles/<kind>/ to a `Profile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .formula import Constant
from .formula_reader import FormulaReader
from .profile import Profile
from .units import Units

if TYPE_CHECKING:
    from .yaml_source import Source


def read_profile(
    kind: str, source: Source, units: Units, overlay: bool = False, lazy: bool = False
) -> Profile:
    """Read one profile file; raises `RuleFileError`."""
    reader = FormulaReader(source, units, overlay, lazy)
    data = source.data
    values: dict[str, str | Constant] = {}
    for name, entry in data.get("values", {}).items():
        path = ("values", name)
        if isinstance(entry, str):
            values[name] = entry
        elif isinstance(entry, dict) and "same_as" in entry:
            other = values.get(entry["same_as"])
            if not isinstance(other, Constant):
                reader.fail(
                    "F201",
                    "unknown-symbol",
                    path,
                    f"`{entry['same_as']}` is no number given above `{name}`.",
                )
            values[name] = Constant(
                name,
                other.band,
                other.unit,
                other.meaning,
                tuple(entry.get("evidence", ())),
                source.key_mark(path),
            )
        else:
            values[name] = reader.constant(path, name, entry)
    profile = Profile(
        kind,
        str(data["id"]),
        str(data["title"]),
        str(data.get("status", "draft")),
        dict(data.get("matches", {})),
        values,
        {n: reader.proof(n, e) for n, e in data.get("evidence", {}).items()},
        source.key_mark(("id",)),
        source,
        overlay,
    )
    reader.finish()
    return profile
