"""Which pictures are drawn of a report: curves over a flag, and stacks of components."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from .errors import InputProblem
from .plot_rules import Drawn, Plot
from .plots import Picture, curve_runs, draw, span
from .report import without_meaning
from .stacks import Stack, stack
from .suggest import suggest

if TYPE_CHECKING:
    from .report import Report

AnyPicture = Picture | Stack


def pictures(report: Report, only: Collection[str] = ()) -> tuple[AnyPicture, ...]:
    """
    What is drawn of a report, from the `plots:` of its rules; none for rules without any.

    With `only` those of these ids. All pictures over one flag have one axis, so that they can stand
    below each other. A picture over a flag that plays no part in the run is left out. Raises
    `InputProblem` where `only` names one that is unknown or left out, and `FitcheckError` where a
    quantity cannot be evaluated for the run itself.
    """
    known = report.prepared.rules.plots
    refuse_unknown(known, only)
    for plot in known:
        if plot.id in only and (why := idle(report, plot)):
            says = f"There is no picture `{plot.id}` of this run: {why}"
            raise InputProblem(says, flag="picture")
    wanted = [p for p in known if (p.id in only or not only) and not idle(report, p)]
    plots = [plot for plot in wanted if isinstance(plot, Plot)]
    curves = {plot.id: curve_runs(report, plot) for plot in plots}
    found: list[AnyPicture] = []
    for plot in wanted:
        if not isinstance(plot, Plot):
            found.append(stack(report, plot))
            continue
        same = [other for other in plots if other.sweep == plot.sweep]
        ends = [s for other in same for s in curves[other.id]]
        first, last = span(report.run, same, [longest for _, _, longest in ends])
        found.append(draw(report, plot, curves[plot.id], first, last))
    return tuple(found)


def refuse_unknown(known: Iterable[Drawn], only: Iterable[str]) -> None:
    """Raise `InputProblem` for a name of no picture."""
    ids = [plot.id for plot in known]
    for name in only:
        if name not in ids:
            message = f"There is no picture `{name}`; there are {', '.join(ids) or 'none'}."
            raise InputProblem(f"{message}{suggest(name, ids)}", flag="picture")


def idle(report: Report, plot: Drawn) -> str:
    """Why a picture means nothing for a run: its flag plays no part; else empty."""
    if not isinstance(plot, Plot) or not plot.longest:
        return ""
    return without_meaning(report.run, report.prepared.rules.formulas[plot.longest])
