"""Which quantity reads which: the dependency graph as text, DOT and SVG.

The drawing is by layers, from what is given to what follows from it; within a layer quantities lie
near what they read. Nothing outside the standard library is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape

from ..errors import InputProblem
from ..record import record
from ..rules import Rules

GAP_X, GAP_Y, HEIGHT, LETTER, MARGIN = 56, 12, 26, 7, 12
SWEEPS = 8


@record
class Graph:
    """Quantities by id, and for each the ids that it reads."""

    reads: Mapping[str, Sequence[str]]
    titles: Mapping[str, str]
    components: frozenset[str]

    def readers(self, name: str) -> list[str]:
        return [n for n, others in self.reads.items() if name in others]


def graph(rules: Rules, ids: Collection[str] = ()) -> Graph:
    """
    The graph of all quantities, or of these ids with all they need and all that need them.

    Raises `InputProblem` for an id that is no quantity.
    """
    reads = {
        f.id: sorted(n for n in rules.reads_of(f) if n in rules.formulas)
        for f in sorted(rules.formulas.values(), key=lambda f: f.id)
    }
    titles = {f.id: f.title for f in rules.formulas.values()}
    kept = set(reads)
    if ids:
        for name in ids:
            rules.formula(name)
        below = reached(ids, lambda name: reads[name])
        above = reached(ids, lambda name: [n for n, others in reads.items() if name in others])
        kept = below | above
    components = frozenset(f.id for f in rules.components)
    chosen = {n: [r for r in others if r in kept] for n, others in reads.items() if n in kept}
    return Graph(chosen, titles, components)


def reached(start: Iterable[str], step: Callable[[str], Iterable[str]]) -> set[str]:
    """Everything that steps lead to, the start included."""
    found: set[str] = set()
    waiting = [*start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += step(name)
    return found


def layers(found: Graph) -> list[list[str]]:
    """Quantities by the longest path that leads to them, ordered to keep lines short."""
    level: dict[str, int] = {}
    remaining = dict(found.reads)
    while remaining:
        ready = [n for n, reads in remaining.items() if all(r in level for r in reads)]
        if not ready:
            cycle = ", ".join(sorted(remaining))
            raise InputProblem(f"These quantities need each other: {cycle}.")
        for name in ready:
            level[name] = 1 + max((level[r] for r in remaining[name]), default=-1)
        remaining = {n: r for n, r in remaining.items() if n not in level}
    rows = [
        [n for n in found.reads if level[n] == i]
        for i in range(max(level.values(), default=-1) + 1)
    ]
    for sweep in range(SWEEPS):
        position = {n: i / max(len(row) - 1, 1) for row in rows for i, n in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            near = found.reads.__getitem__ if sweep % 2 == 0 else found.readers
            row.sort(key=lambda n: _middle(near(n), position, position[n]))
            position.update({n: i / max(len(row) - 1, 1) for i, n in enumerate(row)})
    return rows


def _middle(names: Sequence[str], position: Mapping[str, float], otherwise: float) -> float:
    return sum(position[n] for n in names) / len(names) if names else otherwise


def to_text(found: Graph) -> str:
    """One line a quantity, from what is given to what follows from it."""
    lines = []
    for row in layers(found):
        for name in sorted(row):
            sign = "*" if name in found.components else " "
            reads = ", ".join(found.reads[name])
            lines.append(f"{sign} {name}" + (f"  <-  {reads}" if reads else ""))
    return "\n".join([*lines, "", "* memory component;  <-  reads"])


def to_dot(found: Graph) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph rules {", '  rankdir=LR; node [shape=box, fontname="sans-serif"];']
    for name in found.reads:
        style = ", style=filled, fillcolor=lightblue" if name in found.components else ""
        lines.append(f'  "{name}" [tooltip="{_quoted(found.titles[name])}"{style}];')
    lines += [f'  "{read}" -> "{name}";' for name, reads in found.reads.items() for read in reads]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def to_svg(found: Graph, link: Callable[[str], str | None] = lambda _: None) -> str:
    """
    The graph as a drawing, left to right.

    Parameters
    ----------
    found : Graph
        What to draw.
    link : callable
        From an id to the address its box leads to; None for no link.
    """
    rows = layers(found)
    tallest = max((len(row) for row in rows), default=0)
    height = tallest * (HEIGHT + GAP_Y) + 2 * MARGIN
    place: dict[str, tuple[int, int, int]] = {}  # x, y, width
    x = MARGIN
    for row in rows:
        wide = max(len(n) for n in row) * LETTER + 16
        top = (height - len(row) * (HEIGHT + GAP_Y) + GAP_Y) // 2
        for index, name in enumerate(row):
            place[name] = x, top + index * (HEIGHT + GAP_Y), wide
        x += wide + GAP_X
    width = max(x - GAP_X, 0) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="Which quantity reads which">',
        "<style>",
        "rect{fill:#f6f8fa;stroke:#8c959f}.component rect{fill:#ddf4ff;stroke:#0969da}",
        "path{fill:none;stroke:#8c959f}text{font:12px ui-monospace,monospace;fill:#1f2328}",
        "@media(prefers-color-scheme:dark){rect{fill:#161b22}.component rect{fill:#0c2d6b}"
        "text{fill:#e6edf3}}",
        "</style>",
    ]
    for name, reads in found.reads.items():
        lines += [_line(place[read], place[name]) for read in reads]
    lines += [_box(found, name, place[name], link(name)) for name in found.reads]
    return "\n".join([*lines, "</svg>", ""])


def _line(start: tuple[int, int, int], end: tuple[int, int, int]) -> str:
    x1, y1 = start[0] + start[2], start[1] + HEIGHT // 2
    x2, y2 = end[0], end[1] + HEIGHT // 2
    middle = (x1 + x2) // 2
    return f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"/>'


def _box(found: Graph, name: str, place: tuple[int, int, int], address: str | None) -> str:
    x, y, wide = place
    kind = ' class="component"' if name in found.components else ""
    body = (
        f"<g{kind}><title>{escape(found.titles[name])}</title>"
        f'<rect x="{x}" y="{y}" width="{wide}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text></g>'
    )
    return f'<a href="{escape(address)}">{body}</a>' if address else body
