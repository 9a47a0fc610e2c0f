"""What is drawn of a run, as its file says it: curves over a flag, or stacks of components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .record import record

CURVES, PHASES, STACK = "curves", "phases", "stack"  # kinds of pictures
Place = tuple[str | int, ...]


@record
class Curve:
    """A quantity in bytes that is drawn, or its average over the swept flag."""

    quantity: str
    label: str  # "" where the picture's `label` names each curve
    low: str  # quantities of the two ends of the band; "" where there is none
    high: str
    average: bool
    jumps: bool  # constant between jumps, so each jump is looked for


@record
class Plot:
    """
    A picture of curves.

    `sweep` is the flag along the axis, from `start` to at least `reach` where no curve ends at the
    limit; `over` is the flag that has one curve for each of some values ("" for none), and `label`
    the sentence that names such a curve. `limit` is the quantity that the curves should stay below,
    `longest` the search for the largest swept value that does.
    """

    id: str
    title: str
    axis: str
    sweep: str
    start: int
    reach: int
    scale: str  # linear or log
    over: str
    label: str
    limit: str
    limit_label: str
    longest: str
    curves: tuple[Curve, ...]

    def quantities(self) -> Iterator[tuple[str, Place]]:
        """Each quantity that it names, and the place of that in the picture's entry."""
        for index, curve in enumerate(self.curves):
            named = {"quantity": curve.quantity, "low": curve.low, "high": curve.high}
            for key, name in named.items():
                if name:
                    yield name, ("curves", index, key)
        if self.limit:
            yield self.limit, ("limit", "quantity")
        if self.longest:
            yield self.longest, ("limit", "longest")


@record
class Levels:
    """
    A picture of the components that are live: in every phase, or at the peak alone (a stack).

    `limit` is the quantity that the peak should stay below ("" for none), `low` and `high` the ends
    of its band, `marks` further heights, each a quantity with its label.
    """

    id: str
    title: str
    kind: str  # phases or stack
    limit: str
    limit_label: str
    low: str
    high: str
    marks: tuple[tuple[str, str], ...]

    def quantities(self) -> Iterator[tuple[str, Place]]:
        """Each quantity that it names, and the place of that in the picture's entry."""
        if self.limit:
            yield self.limit, ("limit", "quantity")
        if self.low:
            yield self.low, ("band", "low")
            yield self.high, ("band", "high")
        for index, (name, _) in enumerate(self.marks):
            yield name, ("marks", index, "quantity")


Drawn = Plot | Levels


def read_plots(entries: Any) -> tuple[Drawn, ...]:
    """The pictures of a `plots:` list, in its order; KeyError or TypeError for another shape."""
    return tuple(
        read_plot(entry) if entry.get("kind", CURVES) == CURVES else read_levels(entry)
        for entry in entries
    )


def read_levels(entry: Mapping[str, Any]) -> Levels:
    limit, band = entry.get("limit", {}), entry.get("band", {})
    return Levels(
        str(entry["id"]),
        str(entry["title"]),
        str(entry["kind"]),
        str(limit.get("quantity", "")),
        str(limit.get("label", "")),
        str(band.get("low", "")),
        str(band.get("high", "")),
        tuple((str(m["quantity"]), str(m["label"])) for m in entry.get("marks", ())),
    )


def read_plot(entry: Mapping[str, Any]) -> Plot:
    sweep, limit, over = entry["sweep"], entry.get("limit", {}), entry.get("over", {})
    return Plot(
        str(entry["id"]),
        str(entry["title"]),
        str(sweep["axis"]),
        str(sweep["flag"]),
        int(sweep["from"]),
        int(sweep["to"]),
        str(entry.get("scale", "linear")),
        str(over.get("flag", "")),
        str(over.get("label", "")),
        str(limit.get("quantity", "")),
        str(limit.get("label", "")),
        str(limit.get("longest", "")),
        tuple(
            Curve(
                str(curve["quantity"]),
                str(curve.get("label", "")),
                str(curve.get("low", "")),
                str(curve.get("high", "")),
                bool(curve.get("average", False)),
                bool(curve.get("jumps", False)),
            )
            for curve in entry["curves"]
        ),
    )
