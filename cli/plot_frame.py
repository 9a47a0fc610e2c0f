"""What a file and a terminal draw alike: which points, between which bounds, with which ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fitcheck.cli.words import is_changed
from fitcheck.engine.plots import Picture
from fitcheck.engine.record import record, replace
from fitcheck.engine.spelling import spelled

if TYPE_CHECKING:
    from fitcheck.engine.pictures import AnyPicture
    from fitcheck.engine.plots import Series
    from fitcheck.engine.report import Report

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
NICE = (1.0, 2.0, 2.5, 5.0, 10.0)  # steps of a linear axis
FEW = 8  # whole numbers that all have a tick
ABOVE = 0.12  # free share of the height above the highest point, and below the lowest


def amount(value: float) -> str:
    """Bytes with three digits, in the unit they are read in: 1.5 GiB, 192 KiB."""
    power = unit_of(value)
    shown = float(value) / 1024**power
    digits = 0 if shown >= 100 or not power else 1 if shown >= 10 else 2
    text = f"{shown:,.{digits}f}"
    if digits:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {UNITS[power]}"


def unit_of(value: float) -> int:
    """The power of 1,024 in which an amount of bytes is read."""
    power = 0
    while abs(value) >= 1000 * 1024**power and power < len(UNITS) - 1:
        power += 1
    return power


def count(value: int) -> str:
    """A power of two as people say it: 512, 2k, 128k, 1M."""
    for size, name in ((1 << 20, "M"), (1 << 10, "k")):
        if value >= size and value % size == 0:
            return f"{value // size:,}{name}"
    return f"{value:,}"


def powers(first: float, last: float, most: int) -> list[int]:
    """Powers of two from first to last, every second (third, ...) where there are many."""
    low, high = math.ceil(math.log2(max(first, 1))), math.floor(math.log2(max(last, 1)))
    step = max(1, math.ceil((high - low + 1) / most))
    return [1 << p for p in range(low, high + 1) if p % step == 0]


def even(bottom: float, top: float, most: int) -> list[float]:
    """Round amounts from bottom to top, in the unit of the top."""
    unit = 1024 ** unit_of(top)
    rough = max((top - bottom) / unit / most, 1e-9)
    decade: float = 10.0 ** math.floor(math.log10(rough))
    step = next(n * decade for n in NICE if n * decade >= rough * 0.999)
    ticks = range(math.ceil(bottom / unit / step - 1e-9), math.floor(top / unit / step + 1e-9) + 1)
    return [tick * step * unit for tick in ticks]


@record
class Line:
    """The drawn part of one series; `end` is where it meets the limit, if it does."""

    series: Series
    points: tuple[tuple[int, float], ...]
    end: tuple[int, float] | None


@record
class Frame:
    """A picture's lines and bounds; `here` are the points of the run itself."""

    picture: Picture
    lines: tuple[Line, ...]
    bottom: float
    top: float
    here: tuple[tuple[int, float], ...]

    def x_ticks(self, most: int) -> list[int]:
        first, last = self.picture.first, self.picture.last
        if last - first < min(most, FEW):
            return list(range(first, last + 1))
        return powers(first, last, most)

    def y_ticks(self, most: int) -> list[float]:
        if self.picture.scale == "log":
            return list(map(float, powers(self.bottom, self.top, most)))
        return even(self.bottom, self.top, most)

    def across(self, x: float) -> float:
        """The place of x from 0 (left) to 1."""
        first, last = self.picture.first, self.picture.last
        return math.log2(x / first) / math.log2(last / first)

    def up(self, y: float) -> float:
        """The place of y from 0 (bottom) to 1; below 0 or above 1 it is outside."""
        if self.picture.scale == "log":
            return math.log2(max(y, 1e-9) / self.bottom) / math.log2(self.top / self.bottom)
        return (y - self.bottom) / (self.top - self.bottom)

    def at_edge(self) -> list[int]:
        """Which lines run to the right edge, where they can be named; one alone needs no name."""
        last = [i for i, n in enumerate(self.lines) if n.points[-1][0] == n.series.x[-1]]
        return last if len(self.lines) > 1 else []

    @property
    def ends(self) -> list[Line]:
        """The lines that meet the limit, from left to right."""
        return sorted((n for n in self.lines if n.end), key=lambda n: n.end or (0, 0.0))


def frame(picture: Picture, headroom: float = 0.0) -> Frame:
    """
    The bounds that hold all that is drawn.

    A curve ends where it meets the limit, so that none leaves the picture; that of the run goes on
    to the run. `headroom` is the share of the height that stays free above the limit for labels.
    """
    limit = float(picture.limit[1]) if picture.limit else None
    here = [(picture.here, float(s.at_x(picture.here))) for s in picture.chosen]
    values = [y for _, y in here] + ([limit] if limit is not None else [])
    if limit is None:
        values += [float(y) for s in picture.series for y in s.y]
    highest = max(values)
    known = [line(picture, s, highest * (1 + ABOVE)) for s in picture.series]
    lines = tuple(found for found in known if found.points)
    if limit is not None and lines and not any(n.series.at for n in lines):
        xs = [picture.here, *(x for n in lines for x, _ in n.points)]
        picture = around(picture, min(xs), max(xs))
    values += [end for found in lines for end in band_of(found)]
    highest = max([y for found in lines for _, y in found.points] + values)
    lowest = min([y for found in lines for _, y in found.points] + values)
    if picture.scale == "log" and lowest > 0:
        top, bottom = highest * 2, lowest / 2
    else:
        # From zero, unless all that there is to see would be at the upper edge.
        bottom = 0.0 if lowest < 0.5 * highest else lowest - (highest - lowest) * 2 * ABOVE
        if highest <= bottom:
            bottom, highest = 0.0, max(highest, 1.0)
        top = highest + max((highest - bottom) * ABOVE, 0.0)
        if limit is not None and headroom:
            top = max(top, bottom + (limit - bottom) / (1 - headroom))
    return Frame(picture, lines, bottom, top, tuple(dict.fromkeys(here)))


def around(picture: Picture, first: int, last: int) -> Picture:
    """The picture between the powers of two before and behind all that is drawn."""
    start = max(1 << first.bit_length() - 1, picture.first)
    end = min(max(1 << last.bit_length(), 2 * start), picture.last)
    return replace(picture, first=start, last=end)


def band_of(drawn: Line) -> list[float]:
    """Both ends of the band where it is drawn: around the curve of the run."""
    series, size = drawn.series, len(drawn.points)
    return [float(y) for end in (series.low, series.high) for y in end[:size] if series.chosen]


def line(picture: Picture, series: Series, highest: float) -> Line:
    """
    What is drawn of one series: up to the limit, and at least up to the run that lies on it. One
    that is alone, or above the limit everywhere, goes up to `highest`.
    """
    pairs = [(x, float(y)) for x, y in zip(series.x, series.y, strict=True)]
    if picture.limit is None or series.longest is None:
        return Line(series, tuple(pairs), None)
    last = max(series.longest, picture.here if series.chosen else 0)
    beyond = not series.longest or not series.at
    kept = [(x, y) for x, y in pairs if x <= last or (beyond and y <= highest)]
    if beyond and len(kept) < 2:
        kept = pairs[:2]  # one point is no curve
    end = next(((x, y) for x, y in pairs if x == series.longest), None)
    return Line(series, tuple(kept), end)


def head(report: Report, pictures: Sequence[AnyPicture]) -> tuple[str, str]:
    """The title of all pictures, and the flags that are not the defaults."""
    prepared = report.prepared
    curves = [p for p in pictures if isinstance(p, Picture)]
    swept = {name for p in curves for name in (p.sweep, *(n for s in p.series for n in s.at))}
    if len(swept) > 2 or len(curves) < len(pictures):
        swept = set()  # no axis shows what all pictures were drawn for
    settings = prepared.settings
    changed = [
        " ".join(spelled(flag, settings.values[flag.id]))
        for flag in prepared.rules.flags.flags.values()
        if flag.id not in swept and is_changed(flag, settings)
    ]
    name = f"{short(prepared.model.name)} on {prepared.card.title}: {report.title.lower()}"
    return name, ", ".join(changed)


def short(name: str, longest: int = 48) -> str:
    """The name of a model, cut where it is long."""
    return name if len(name) <= longest else f"{name[: longest - 3].rstrip()}..."


def grades(picture: Picture) -> str:
    """The evidence behind the curves, each grade once."""
    return "evidence: " + ", ".join(dict.fromkeys(s.grade for s in picture.series))


TOO_LOW = "a rule warns that the estimate may be too low"


def run_labels(drawn: Frame) -> list[str]:
    """What the point of the run stands for, one line for each curve that it lies on."""
    picture = drawn.picture
    values = [(s.label, amount(float(s.at_x(picture.here)))) for s in picture.chosen]
    if picture.limit:
        names = [s.label if s.at else f"{picture.here:,}" for s in picture.chosen]
        return [f"this run, {n}: {v}" for n, (_, v) in zip(names, values, strict=True)]
    return [f"{label}: {value}" if len(values) > 1 else value for label, value in values]


def end_label(drawn: Line) -> str:
    """How far a line that meets the limit goes; that of one alone needs no name."""
    assert drawn.end is not None
    if drawn.series.at:
        return f"{drawn.series.label}: to {drawn.end[0]:,}"
    return f"fits up to {drawn.end[0]:,}"


def none_fits(picture: Picture) -> str:
    """That nothing fits, where not even the first value of the only curve does; else empty."""
    alone = [s for s in picture.chosen if picture.limit and not s.at]
    return "not even 1 fits" if any(s.longest == 0 for s in alone) else ""


def limit_label(report: Report, picture: Picture) -> tuple[str, ...]:
    """The limit in words: its amount with its name, and whose it is."""
    if picture.limit is None:
        return ()
    label, value = picture.limit
    return f"{amount(float(value))} {label}", report.prepared.card.title


def apart(places: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Middles of labels as near to `places` as they can be without one lying on another."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = list(places)
    floor = low
    for i in order:
        found[i] = max(found[i], floor + sizes[i] / 2)
        floor = found[i] + sizes[i] / 2
    ceiling = high
    for i in reversed(order):
        found[i] = min(found[i], ceiling - sizes[i] / 2)
        ceiling = found[i] - sizes[i] / 2
    return found
