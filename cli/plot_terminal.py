"""The pictures in characters: braille dots where the stream has them, ASCII signs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from fitcheck.cli.plot_frame import (
    TOO_LOW,
    Frame,
    Line,
    amount,
    apart,
    count,
    end_label,
    frame,
    grades,
    head,
    limit_label,
    none_fits,
    run_labels,
)
from fitcheck.cli.plot_terminal_stacks import fit, stacked
from fitcheck.engine.plots import Picture
from fitcheck.engine.record import record

if TYPE_CHECKING:
    from fitcheck.engine.report import Report

TALL, LOW = 16, 9  # rows of a picture with a limit, and of one without
DOUBT = "(!)"
BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a cell, by row and column
CHOSEN, COLOURS = "bold red", ("blue", "cyan", "magenta", "green")


@record
class Signs:
    """The characters of a drawing; `dots` says whether lines are drawn in braille."""

    dots: bool
    limit: str
    end: str
    run: str
    side: str
    corner: str
    floor: str
    between: str
    lines: str  # of the first, second, ... line where there are no dots


FINE = Signs(True, "╌", "●", "◆", "│", "└", "─", " · ", "")
PLAIN = Signs(False, "-", "o", "@", "|", "+", "-", " | ", "*.:~")


def signs_for(encoding: str | None) -> Signs:
    """Those that an encoding has."""
    try:
        (chr(BRAILLE + 0xFF) + FINE.limit + FINE.end + FINE.run + FINE.between).encode(
            encoding or "utf-8"
        )
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FINE


class Canvas:
    """Cells with a character and a style each; row 0 is the highest."""

    def __init__(self, width: int, height: int, signs: Signs) -> None:
        self.width, self.height, self.signs = width, height, signs
        self.cells = [[(" ", "")] * width for _ in range(height)]
        self.dots = [[0] * width for _ in range(height)]

    def put(self, column: int, row: int, text: str, style: str) -> None:
        """Write over what is there, as far as there is room."""
        for offset, sign in enumerate(text):
            if 0 <= row < self.height and 0 <= column + offset < self.width:
                self.cells[row][column + offset] = (sign, style)
                self.dots[row][column + offset] = 0

    def free(self, column: int, row: int, size: int) -> bool:
        """Whether nothing is written there (lines do not count)."""
        if not 0 <= row < self.height or column < 0 or column + size > self.width:
            return False
        around = range(max(column - 1, 0), min(column + size + 1, self.width))
        return all(self.cells[row][c][0] == " " or self.dots[row][c] for c in around)

    def spot(self, across: float, up: float) -> tuple[float, float]:
        """A place from 0 to 1 in dots (cells where there are none) from the upper left corner."""
        wide, high = (2, 4) if self.signs.dots else (1, 1)
        return across * (self.width * wide - 1), (1 - up) * (self.height * high - 1)

    def place(self, across: float, up: float) -> tuple[int, int]:
        """The cell of a place from 0 to 1."""
        x, y = map(round, self.spot(across, up))
        return (x // 2, y // 4) if self.signs.dots else (x, y)

    def line(self, places: Sequence[tuple[float, float]], style: str, sign: str) -> None:
        """Join places from 0 to 1."""
        spots = [self.spot(*place) for place in places]
        for (x0, y0), (x1, y1) in pairwise([*spots, spots[-1]]):
            steps = max(1, round(max(abs(x1 - x0), abs(y1 - y0)) * 2))
            for i in range(steps + 1):
                x, y = (round(a + (b - a) * i / steps) for a, b in ((x0, x1), (y0, y1)))
                self.dot(x, y, style, sign)

    def dot(self, x: int, y: int, style: str, sign: str) -> None:
        """Set one dot, or the sign of a line where there are no dots; outside nothing is set."""
        column, row = (x // 2, y // 4) if self.signs.dots else (x, y)
        if not (0 <= column < self.width and 0 <= row < self.height):
            return
        if not self.signs.dots:
            self.cells[row][column] = (sign, style)
            return
        self.dots[row][column] |= DOTS[y % 4][x % 2]
        self.cells[row][column] = (chr(BRAILLE + self.dots[row][column]), style)


def drawing(
    report: Report, width: int, encoding: str | None, names: Sequence[str] = ()
) -> list[Text]:
    """
    All pictures below each other, each line at most `width` columns.

    `encoding` is that of the stream, which decides between braille and ASCII.
    """
    signs = signs_for(encoding)
    pictures = report.pictures(*names)
    title, flags = head(report, pictures)
    lines = [Text(fit(f"{title}{f' ({flags})' if flags else ''}", width), style="bold")]
    for picture in pictures:
        if isinstance(picture, Picture):
            lines += [Text(""), *panel(report, picture, width, signs)]
        else:
            lines += [Text(""), *stacked(picture, width, signs.dots)]
    return lines


def panel(report: Report, picture: Picture, width: int, signs: Signs) -> Iterator[Text]:
    """One picture: title, canvas between labels, axis, and what the signs mean."""
    drawn = frame(picture, headroom=0.2)
    picture = drawn.picture
    height = TALL if picture.limit else LOW
    ticks = {amount(y): y for y in drawn.y_ticks(height // 2)}
    left = max(map(len, ticks)) + 1
    names = {index: named(drawn, index, signs) for index in drawn.at_edge()}
    right = max((cell_len(name) + 1 for name in names.values()), default=0)
    canvas = Canvas(max(width - left - right, 20), height, signs)
    fill(canvas, drawn)
    yield Text(fit(picture.title, width), style="bold")
    rows: dict[int, str] = {}
    for tick, y in ticks.items():
        rows.setdefault(canvas.place(0, drawn.up(y))[1], tick)
    beside = names_beside(canvas, drawn, names)
    for row in range(height):
        text = Text(f"{rows.get(row, ''):>{left - 1}}{signs.side}", style="dim")
        for sign, style in canvas.cells[row]:
            text.append(sign, style=f"not dim {style}")
        if row in beside:
            label, style = beside[row]
            text.append(f" {label}", style=f"not dim {style}")
        yield text
    yield from axis(canvas, drawn, left, signs)
    yield from meaning(report, drawn, width, signs)


def fill(canvas: Canvas, drawn: Frame) -> None:
    """Lines, the limit, the points and their numbers."""
    signs, picture = canvas.signs, drawn.picture
    order = sorted(range(len(drawn.lines)), key=lambda i: drawn.lines[i].series.chosen)
    if picture.limit:
        row = canvas.place(0, drawn.up(float(picture.limit[1])))[1]
        canvas.put(0, row, signs.limit * canvas.width, "dim")
    for index in order:
        line = drawn.lines[index]
        places = [(drawn.across(x), drawn.up(y)) for x, y in line.points]
        canvas.line(places, style_of(drawn, index), sign_of(drawn, index, signs))
    for line in drawn.ends:
        assert line.end is not None
        style = CHOSEN if line.series.chosen else ""
        column, row = canvas.place(drawn.across(line.end[0]), drawn.up(line.end[1]))
        canvas.put(column, row, signs.end, style)
        name = short(line)
        start = min(max(column - len(name) // 2, 0), canvas.width - len(name))
        above = next((r for r in (row - 1, row - 2) if canvas.free(start, r, len(name))), None)
        if above is not None:
            canvas.put(start, above, name, style)
    for x, y in drawn.here:
        canvas.put(*canvas.place(drawn.across(x), drawn.up(y)), signs.run, CHOSEN)


def short(line: Line) -> str:
    """The number on its label: the value of the other flag, or of one alone where it ends."""
    values = [*line.series.at.values()] or [line.end[0] if line.end else 0]
    return ", ".join(f"{value:,}" for value in values)


def style_of(drawn: Frame, index: int) -> str:
    limited = drawn.picture.limit is not None
    if limited and drawn.lines[index].series.chosen:
        return CHOSEN
    return COLOURS[0] if limited else COLOURS[index % len(COLOURS)]


def sign_of(drawn: Frame, index: int, signs: Signs) -> str:
    """The ASCII sign of a line: one for the run, another for all others beside it."""
    if signs.dots:
        return ""
    if drawn.picture.limit:
        return signs.lines[0] if drawn.lines[index].series.chosen else signs.lines[1]
    return signs.lines[index % len(signs.lines)]


def named(drawn: Frame, index: int, signs: Signs) -> str:
    """A line's name with what tells it from others: its sign, or that it may be too low."""
    series = drawn.lines[index].series
    if drawn.picture.limit:
        return f"{series.label} {DOUBT}" if series.too_low else series.label
    return f"{series.label} {sign_of(drawn, index, signs)}".strip()


def names_beside(
    canvas: Canvas, drawn: Frame, names: Mapping[int, str]
) -> dict[int, tuple[str, str]]:
    """Row to the name of the line that ends there, and its style."""
    # What is higher in the picture stands higher where two would share a row.
    ranked = sorted(names, key=lambda i: -drawn.lines[i].points[-1][1])
    places = [canvas.place(1, drawn.up(drawn.lines[i].points[-1][1]))[1] + 0.5 for i in ranked]
    rows = apart(places, [1.0] * len(places), 0.0, float(canvas.height))
    return {int(row): (names[i], style_of(drawn, i)) for i, row in zip(ranked, rows, strict=True)}


def axis(canvas: Canvas, drawn: Frame, left: int, signs: Signs) -> Iterator[Text]:
    """The lower edge, its numbers, and what they count."""
    yield Text(" " * (left - 1) + signs.corner + signs.floor * canvas.width, style="dim")
    numbers, end = "", -1
    for x in drawn.x_ticks(max(canvas.width // 7, 2)):
        text, column = count(x), canvas.place(drawn.across(x), 0)[0]
        start = min(max(column - len(text) // 2, 0), canvas.width - len(text))
        if start > end:
            numbers = numbers.ljust(start) + text
            end = start + len(text)
    yield Text(" " * left + numbers, style="dim")
    yield Text(" " * left + drawn.picture.axis.center(canvas.width).rstrip(), style="dim")


def meaning(report: Report, drawn: Frame, width: int, signs: Signs) -> Iterator[Text]:
    """What the signs stand for, and where each line meets the limit, wrapped at the width."""
    mark = signs.run
    parts = [(f"{mark} {signs.between.join(run_labels(drawn))}", CHOSEN)]
    if drawn.picture.limit:
        parts.append((f"{signs.limit * 3} {', '.join(limit_label(report, drawn.picture))}", ""))
        for line in reversed(drawn.ends):
            style = CHOSEN if line.series.chosen else ""
            doubt = f" {DOUBT}" if line.series.too_low else ""
            parts.append((f"{signs.end} {end_label(line)}{doubt}", style))
        if none := none_fits(drawn.picture):
            parts.append((none, "bold"))
        if any(line.series.too_low for line in drawn.lines):
            parts.append((f"{DOUBT} {TOO_LOW}", ""))
    parts.append((grades(drawn.picture), "dim"))
    row = Text()
    for text, style in parts:
        if row.plain and cell_len(row.plain) + 3 + cell_len(text) > width:
            yield row
            row = Text()
        row.append("   " if row.plain else "").append(fit(text, width), style=style)
    yield row
