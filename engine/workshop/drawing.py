"""The dependency graph as an SVG drawing: layers from top to bottom, lines led between the boxes.

The usual method for layered drawings, in small: a line that skips layers gets a bend in each of
them, every layer is ordered by where its neighbours lie, and then moved towards them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise

from .graph import Graph, layers

GAP_X, GAP_Y, HEIGHT, LETTER, PADDING, MARGIN = 14, 40, 26, 7, 16, 10
BEND = 6  # width of a line that passes between boxes
SWEEPS = 12

STYLE = """\
<style>
rect{fill:#f6f8fa;stroke:#8c959f}.component rect{fill:#ddf4ff;stroke:#0969da}
path{fill:none;stroke:#8c959f}
text{font:12px ui-monospace,monospace;fill:#1f2328;text-anchor:middle}
@media(prefers-color-scheme:dark){rect{fill:#161b22}.component rect{fill:#0c2d6b}
text{fill:#e6edf3}}
</style>"""


class Drawing:
    """Boxes and bends with their layers, neighbours and places."""

    def __init__(self, found: Graph) -> None:
        self.found = found
        self.rows: list[list[str]] = [list(row) for row in layers(found)]
        level = {n: i for i, row in enumerate(self.rows) for n in row}
        self.paths: list[list[str]] = []  # a line as the boxes and bends it goes through
        self.above: dict[str, list[str]] = {n: [] for n in level}
        self.below: dict[str, list[str]] = {n: [] for n in level}
        for name, reads in found.reads.items():
            for read in reads:
                self.lead(read, name, level[read], level[name])
        for sweep in range(SWEEPS):
            self.order(downwards=sweep % 2 == 0)
        self.x = {n: x for row in self.rows for n, x in self.packed(row).items()}
        for sweep in range(SWEEPS):
            self.move(downwards=sweep % 2 == 0)
        least = min((x - self.width(n) / 2 for n, x in self.x.items()), default=0)
        self.x = {n: x - least + MARGIN for n, x in self.x.items()}

    def width(self, name: str) -> int:
        boxed = name in self.found.reads
        return len(name) * LETTER + PADDING if boxed else BEND

    def lead(self, start: str, end: str, first: int, last: int) -> None:
        """A line from one box to another, with a bend in every layer between."""
        path = [start]
        for row in range(first + 1, last):
            bend = f"{start} > {end} @ {row}"  # no id has spaces
            self.rows[row].append(bend)
            self.above[bend], self.below[bend] = [], []
            path.append(bend)
        path.append(end)
        for upper, lower in pairwise(path):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        self.paths.append(path)

    def order(self, downwards: bool) -> None:
        """Sort each layer by the mean position of the neighbours it was led from."""
        near = self.above if downwards else self.below
        position = {n: i / len(row) for row in self.rows for i, n in enumerate(row)}
        for row in self.rows if downwards else reversed(self.rows):
            row.sort(key=lambda n: mean([position[m] for m in near[n]], self.alone(n, position[n])))
            position.update({n: i / len(row) for i, n in enumerate(row)})

    def alone(self, name: str, position: float) -> float:
        """What nothing reads and what reads nothing goes to the end of its layer."""
        return position if self.above[name] or self.below[name] else 2.0

    def packed(self, row: Sequence[str]) -> dict[str, float]:
        """The middles of a layer side by side, the layer centred on 0."""
        place, x = {}, 0.0
        for name in row:
            place[name] = x + self.width(name) / 2
            x += self.width(name) + GAP_X
        return {n: p - (x - GAP_X) / 2 for n, p in place.items()}

    def move(self, downwards: bool) -> None:
        """Move each layer towards its neighbours, in its order and without overlaps."""
        near = self.above if downwards else self.below
        for row in self.rows if downwards else reversed(self.rows):
            wanted = {n: mean([self.x[m] for m in near[n]], self.x[n]) for n in row}
            right: list[float] = []
            for index, name in enumerate(row):
                least = right[-1] + self.space(row[index - 1], name) if right else wanted[name]
                right.append(max(wanted[name], least))
            shift = mean([wanted[n] - r for n, r in zip(row, right, strict=True)], 0)
            self.x.update({n: r + shift for n, r in zip(row, right, strict=True)})

    def space(self, first: str, second: str) -> float:
        return (self.width(first) + self.width(second)) / 2 + GAP_X

    def size(self) -> tuple[int, int]:
        right = max((x + self.width(n) / 2 for n, x in self.x.items()), default=0.0)
        return round(right) + MARGIN, len(self.rows) * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN

    def top(self, row: int) -> int:
        return MARGIN + row * (HEIGHT + GAP_Y)


def mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def to_svg(found: Graph, link: Callable[[str], str | None] = lambda _: None) -> str:
    """
    The graph as a drawing, from what is given to what follows from it.

    Parameters
    ----------
    found : Graph
        What to draw.
    link : callable
        From an id to the address its box leads to; None for no link.
    """
    drawing = Drawing(found)
    width, height = drawing.size()
    level = {n: i for i, row in enumerate(drawing.rows) for n in row}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="Which quantity reads which">',
        STYLE,
    ]
    lines += [_line(drawing, level, path) for path in drawing.paths]
    lines += [_box(drawing, level[name], name, link(name)) for name in found.reads]
    return "\n".join([*lines, "</svg>", ""])


def _line(drawing: Drawing, level: Mapping[str, int], path: Sequence[str]) -> str:
    """Out of the lower edge of a box, straight through every bend, into the next box."""
    x, y = round(drawing.x[path[0]]), drawing.top(level[path[0]]) + HEIGHT
    parts = [f"M{x} {y}"]
    for name in path[1:]:
        end_x, end_y = round(drawing.x[name]), drawing.top(level[name])
        half = (y + end_y) // 2
        parts.append(f"C{x} {half} {end_x} {half} {end_x} {end_y}")
        if name != path[-1]:
            end_y += HEIGHT
            parts.append(f"V{end_y}")
        x, y = end_x, end_y
    return f'<path d="{"".join(parts)}"/>'


def _box(drawing: Drawing, row: int, name: str, address: str | None) -> str:
    found, wide = drawing.found, drawing.width(name)
    x, y = round(drawing.x[name] - wide / 2), drawing.top(row)
    kind = ' class="component"' if name in found.components else ""
    body = (
        f"<g{kind}><title>{escape(found.titles[name])}</title>"
        f'<rect x="{x}" y="{y}" width="{wide}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{x + wide // 2}" y="{y + 17}">{escape(name)}</text></g>'
    )
    return f'<a href="{escape(address)}">{body}</a>' if address else body
