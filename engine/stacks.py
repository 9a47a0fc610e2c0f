"""Stacks of components: what is live in each phase of a run, or at its peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .grades import weakest
from .plot_rules import PHASES, Levels
from .record import record

if TYPE_CHECKING:
    from .report import Component, Report


@record
class Part:
    """One component of a column, in bytes."""

    id: str
    title: str
    bytes: int
    place: int  # among all components of the rules, which its colour follows


@record
class Column:
    """What is live in one phase, in the order of the table; `total` is the sum in bytes."""

    id: str
    title: str
    parts: tuple[Part, ...]
    total: int


@record
class Stack:
    """
    One picture of columns.

    `parts` are the components of all columns; `peak` is the id of the highest column, `low` and
    `high` the ends of its band (equal where nothing is uncertain). `limit` and `marks` are heights
    with their labels: (label, bytes).
    """

    id: str
    title: str
    kind: str
    columns: tuple[Column, ...]
    parts: tuple[Part, ...]
    peak: str
    low: int
    high: int
    limit: tuple[str, int] | None
    marks: tuple[tuple[str, int], ...]
    grade: str

    @property
    def highest(self) -> Column:
        """The column that reaches the peak."""
        return next(c for c in self.columns if c.id == self.peak)

    @property
    def absent(self) -> tuple[Part, ...]:
        """Components that are not there at the peak."""
        there = {part.id for part in self.highest.parts}
        return tuple(part for part in self.parts if part.id not in there)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: bytes as integers."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "peak": self.peak,
            "low": self.low,
            "high": self.high,
            "limit": self.limit and {"label": self.limit[0], "bytes": self.limit[1]},
            "marks": [{"label": label, "bytes": value} for label, value in self.marks],
            "grade": self.grade,
            "columns": [
                {"id": c.id, "total": c.total, "parts": {p.id: p.bytes for p in c.parts}}
                for c in self.columns
            ],
        }


def stack(report: Report, plot: Levels) -> Stack:
    """The columns of a picture; each adds up to the phase of the report."""
    from .explain import peak

    there, highest = report.run, peak(report)
    phases = report.phases if plot.kind == PHASES else (highest,)
    shown = [c for c in report.components if c.bytes]
    parts = {c.id: Part(c.id, c.title, c.bytes, place) for place, c in enumerate(report.components)}
    titles = report.prepared.rules.phases
    columns = tuple(
        Column(
            phase,
            titles[phase],
            tuple(parts[c.id] for c in shown if live(c, phase)),
            report.phases[phase],
        )
        for phase in phases
    )
    total = report.phases[highest]
    low, high = (int(there.value(n)) if n else total for n in (plot.low, plot.high))
    marks = [(label, int(there.value(name))) for name, label in plot.marks]
    return Stack(
        plot.id,
        plot.title,
        plot.kind,
        columns,
        tuple(parts[c.id] for c in shown),
        highest,
        min(low, total),
        max(high, total),
        (plot.limit_label, int(there.value(plot.limit))) if plot.limit else None,
        tuple((label, value) for label, value in marks if value != total),
        str(weakest(c.grade for c in shown if live(c, highest))),
    )


def live(component: Component, phase: str) -> bool:
    """Whether a component is there in a phase."""
    return phase in component.phases or "always" in component.phases
