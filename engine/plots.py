"""The points of curves over a flag, each an exact evaluation. Needs no plotting library.

Between two points nothing is made up: whoever draws joins neighbours, eight to each doubling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .errors import FitcheckError
from .plot_rules import Curve, Plot
from .record import record
from .report import find_caveats, is_refused, sentence

if TYPE_CHECKING:
    from .report import Report
    from .run import Run

PER_DOUBLING = 8  # points, so that lines between them look as curved as they are
MOST_CURVES = 8  # beside that of the run itself; with more their labels would not fit
Bytes = int | Fraction


@record
class Series:
    """
    One curve.

    `x` are values of the swept flag, `y` bytes, `low` and `high` the ends of the band (empty where
    there is none); `at` are the other flags that it was drawn for, and `chosen` says that they are
    those of the run. `longest` is the last x below the limit: None where the picture has no limit
    or the curve stays below it, 0 where even the first value does not. `too_low` says that a rule
    warns, at the run's value of x, of a number that is too low.
    """

    label: str
    quantity: str
    at: Mapping[str, int]
    chosen: bool
    x: tuple[int, ...]
    y: tuple[Bytes, ...]
    low: tuple[Bytes, ...]
    high: tuple[Bytes, ...]
    longest: int | None
    grade: str
    too_low: bool

    def at_x(self, x: int) -> Bytes:
        """The bytes at one of the points; raises ValueError for another x."""
        return self.y[self.x.index(x)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: bytes, averages as floats."""
        return {
            "label": self.label,
            "quantity": self.quantity,
            "at": dict(self.at),
            "chosen": self.chosen,
            "x": list(self.x),
            "y": list(map(plain, self.y)),
            "low": list(map(plain, self.low)),
            "high": list(map(plain, self.high)),
            "longest": self.longest,
            "grade": self.grade,
            "too_low": self.too_low,
        }


@record
class Picture:
    """The curves of one picture; `limit` is (label, bytes), `here` the run's value of `sweep`."""

    id: str
    title: str
    axis: str
    sweep: str
    scale: str
    first: int
    last: int
    here: int
    limit: tuple[str, Bytes] | None
    series: tuple[Series, ...]

    @property
    def chosen(self) -> tuple[Series, ...]:
        """The curves that the run lies on."""
        return tuple(s for s in self.series if s.chosen)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        limit = self.limit and {"label": self.limit[0], "bytes": plain(self.limit[1])}
        return {
            "id": self.id,
            "title": self.title,
            "axis": self.axis,
            "sweep": self.sweep,
            "scale": self.scale,
            "here": self.here,
            "limit": limit,
            "series": [s.to_dict() for s in self.series],
        }


def plain(value: Bytes) -> int | float:
    return value if isinstance(value, int) else float(value)


def curve_runs(report: Report, plot: Plot) -> list[tuple[dict[str, int], Run, int | None]]:
    """
    For each value of `over` that is drawn: that flag, a run with it, and its longest.

    The values are powers of two as long as one fits, thinned out evenly where there are many, and
    that of the run.
    """
    run = report.run
    if not plot.over:
        return [({}, run, longest(run, plot))]
    here, flag = run.flag(plot.over), run.rules.flags.flags[plot.over]
    values, value = [], 1
    while value <= flag.high:
        end = longest(run.with_flag(plot.over, value), plot)
        if plot.limit and end is not None and end < plot.start:
            break
        values.append(value)
        value *= 2
    values = values[:: -(-len(values) // MOST_CURVES) or 1]
    apart = [v for v in values if 3 * v <= 2 * here or 2 * v >= 3 * here]
    kept = sorted({*(v for v in apart if v >= flag.low), here})
    runs = {v: run if v == here else run.with_flag(plot.over, v) for v in kept}
    return [({plot.over: v}, there, longest(there, plot)) for v, there in runs.items()]


def longest(run: Run, plot: Plot) -> int | None:
    """The largest swept value within the limit; None where there is none or no limit."""
    if not plot.limit:
        return None
    value: int = run.value(plot.longest)
    found = run.searches.get(plot.longest)
    return None if found is not None and found.capped else value


def span(run: Run, plots: Iterable[Plot], ends: Iterable[int | None]) -> tuple[int, int]:
    """The axis of pictures over one flag: powers of two around the run and every end."""
    plots = list(plots)
    flag = run.rules.flags.flags[plots[0].sweep]
    here: int = run.flag(flag.id)
    beyond = 1 if any(plot.over for plot in plots) else 2  # a curve alone goes on behind its end
    known = [end * beyond for end in ends if end]
    reach = known or [plot.reach for plot in plots]
    first = min([here // 2, *(end // beyond for end in known), *(plot.start for plot in plots)])
    first = max(1 << max(first, 1).bit_length() - 1, flag.low)
    return first, min(max(1 << (max(2 * here, *reach) - 1).bit_length(), 2 * first), flag.high)


def draw(
    report: Report,
    plot: Plot,
    curves: Iterable[tuple[dict[str, int], Run, int | None]],
    first: int,
    last: int,
) -> Picture:
    """One picture from `first` to `last`."""
    run, mode = report.run, report.prepared.rules.mode
    here = run.flag(plot.sweep)
    found = []
    for at, there, end in curves:
        xs = grid(first, last, [here, end or here])
        warned = any(c.warns and c.direction == "under" for c in find_caveats(there))
        for curve in plot.curves:
            label = curve.label or (sentence(there, mode.formula, plot.label) if mode else "")
            points = evaluated(report, there, plot, curve, xs)
            y, low, high = columns(points.values())
            grade = str(report.grade(curve.quantity))
            chosen, x = there is run, tuple(points)
            found.append(
                Series(label, curve.quantity, at, chosen, x, y, low, high, end, grade, warned)
            )
    limit = (plot.limit_label, run.value(plot.limit)) if plot.limit else None
    return Picture(
        plot.id,
        plot.title,
        plot.axis,
        plot.sweep,
        plot.scale,
        first,
        last,
        here,
        limit,
        tuple(found),
    )


def grid(first: int, last: int, also: Iterable[int]) -> list[int]:
    """
    Whole numbers from first to last, and others in between.

    Each doubling is cut into equal parts: multiples of a power of two, so that what is handed out
    in pages is met at full pages wherever the parts are not smaller than one.
    """
    xs, begin = {first, last, *(x for x in also if first <= x <= last)}, first
    while begin < last:
        steps = (begin * (PER_DOUBLING + part) // PER_DOUBLING for part in range(PER_DOUBLING))
        xs.update(x for x in steps if x < last)
        begin *= 2
    return sorted(xs)


Point = tuple[Bytes, ...]  # y, or y with the two ends of its band


def evaluated(
    report: Report, there: Run, plot: Plot, curve: Curve, xs: Iterable[int]
) -> dict[int, Point]:
    """x to exact values; an x at which the rules refuse the run or have no value has no point."""
    names = [curve.quantity, *(n for n in (curve.low, curve.high) if n)]

    def point(x: int) -> Point | None:
        try:
            run = there if x == there.flag(plot.sweep) else there.with_flag(plot.sweep, x)
            if run is not report.run and is_refused(run):
                return None
            return tuple(Fraction(run.value(n), x if curve.average else 1) for n in names)
        except FitcheckError:
            if there is report.run and x == there.flag(plot.sweep):
                raise  # what the run itself cannot have is no gap
            return None

    found = {x: value for x in xs if (value := point(x)) is not None}
    if curve.jumps:
        known = sorted(found)
        pairs = list(pairwise(known))
        while pairs:
            low, high = pairs.pop()
            if high - low < 2 or found[low] == found[high]:
                continue
            middle = (low + high) // 2
            if (value := point(middle)) is not None:
                found[middle] = value
                pairs += [(low, middle), (middle, high)]
    return dict(sorted(found.items()))


def columns(points: Iterable[Point]) -> tuple[Point, Point, Point]:
    """y, low and high, with whole numbers as integers; low and high are empty without a band."""
    rows = [tuple(map(whole, point)) for point in points]
    banded = bool(rows) and len(rows[0]) == 3
    y, low, high = (tuple(row[i] for row in rows if i == 0 or banded) for i in range(3))
    return y, low, high


def whole(value: Bytes) -> Bytes:
    return value.numerator if value.denominator == 1 else value
