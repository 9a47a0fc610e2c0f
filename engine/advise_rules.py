"""What `formulas/advise.yaml` says: axes, objectives, ceilings and prices of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import FitcheckError
from .record import record

if TYPE_CHECKING:
    from .rules import Rules
    from .yaml_source import Source


@record
class Most:
    """An option with which a person bounds an axis: longer values are an error."""

    option: str
    json: str
    help: str


@record
class MadeFor:
    """A fact of the model that bounds an axis: longer values are warned of, by `says`."""

    fact: str
    says: str


@record
class Axis:
    """A flag that is swept; without a `default` its values have to be given."""

    flag: str
    option: str
    json: str
    help: str
    default: tuple[int, ...]
    most: Most | None
    made_for: MadeFor | None


@record
class Objective:
    """What should be large: an expression over the axes."""

    id: str
    value: str
    title: str


@record
class Ceiling:
    """Where an axis ends: the search that is asked, its value, and the changes that lead there."""

    axis: str
    title: str
    search: str
    value: str
    change: Mapping[str, Any]


@record
class Step:
    """One step along an axis, where `when` holds; `value` is what is said to change."""

    axis: str
    title: str
    value: str
    when: str
    change: Mapping[str, Any]


@record(identity=True)
class Plan:
    """The whole file; `source` says where each part stands."""

    price: str
    fits: str
    axes: tuple[Axis, ...]
    held: Mapping[str, str]  # flag to why no sweep has it
    objectives: tuple[Objective, Objective]
    splits: tuple[str, ...]
    ceilings: tuple[Ceiling, ...]
    steps: tuple[Step, ...]
    source: Source

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of the axes, in their order."""
        return tuple(axis.flag for axis in self.axes)

    def axis(self, name: str) -> Axis | None:
        """The axis of a flag, or of the name that its list has in JSON."""
        return next((a for a in self.axes if name in (a.flag, a.json)), None)


def plan_of(rules: Rules) -> Plan:
    """The plan of these rules; raises `FitcheckError` where they have none."""
    if rules.mode is not None or rules.advice is None:
        raise FitcheckError("formulas/advise.yaml is missing, which says what is swept.")
    return read_plan(rules.advice)


def read_plan(source: Source) -> Plan:
    """The parsed file as records; KeyError or TypeError for another shape."""
    data = source.data
    first, second = (Objective(o["id"], o["value"], o["title"]) for o in data["objectives"])
    return Plan(
        data["price"],
        data["fits"],
        tuple(map(read_axis, data["axes"])),
        data.get("held", {}),
        (first, second),
        tuple(data["splits"]),
        tuple(
            Ceiling(c["axis"], c["title"], c["search"], c["value"], c["change"])
            for c in data["ceilings"]
        ),
        tuple(
            Step(s["axis"], s["title"], s["value"], condition(s["when"]), s["change"])
            for s in data["prices"]
        ),
        source,
    )


def read_axis(entry: Mapping[str, Any]) -> Axis:
    most, made = entry.get("most"), entry.get("made_for")
    return Axis(
        entry["flag"],
        entry["option"],
        entry["json"],
        entry["help"],
        tuple(entry.get("default", ())),
        Most(most["option"], most["json"], most["help"]) if most else None,
        MadeFor(made["fact"], made["says"]) if made else None,
    )


def condition(value: str | bool) -> str:
    """A condition as the text of an expression."""
    return str(value).lower() if isinstance(value, bool) else value
