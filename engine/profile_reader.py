"""From a parsed file of profiles/<kind>/ to a `Profile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import RuleFileError
from .formula import Constant
from .formula_reader import FormulaReader
from .profile import Profile
from .record import replace
from .suggest import suggest
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
        str(data.get("extends", "")),
        dict(data.get("options", {})),
        tuple(data.get("commands", ())),
        dict(data.get("defaults", {})),
        dict(data.get("assumes", {})),
    )
    reader.finish()
    return profile


def completed(profiles: Sequence[Profile]) -> list[Profile]:
    """
    The profiles of a kind, each with the values, evidence and options of those it extends.

    Raises `RuleFileError` where one extends what is not there, or itself.
    """
    known = {p.id: p for p in profiles}

    def whole(profile: Profile, below: tuple[str, ...] = ()) -> Profile:
        if not profile.extends:
            return profile
        if profile.extends not in known or profile.extends in (profile.id, *below):
            mark = profile.source.mark(("extends",))
            message = f"`{profile.extends}` is no other file of profiles/{profile.kind}."
            near = suggest(profile.extends, known)
            raise RuleFileError(
                [profile.source.problem("F201", "unknown-symbol", mark, f"{message}{near}")]
            )
        parent = whole(known[profile.extends], (*below, profile.id))
        return replace(
            profile,
            values={**parent.values, **profile.values},
            evidence={**parent.evidence, **profile.evidence},
            options={**parent.options, **profile.options},
            assumes={**parent.assumes, **profile.assumes},
        )

    return [whole(profile) for profile in profiles]
