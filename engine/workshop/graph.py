"""Which quantity reads which: the dependency graph, as text and DOT; `drawing.py` has the SVG."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..errors import InputProblem
from ..record import record
from ..rules import Rules


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
    """Quantities by the longest path to them; what reads nothing, just before its first reader."""
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
    for name in (n for n, reads in found.reads.items() if not reads):
        level[name] = min((level[r] for r in found.readers(name)), default=1) - 1
    depth = max(level.values(), default=-1) + 1
    return [[n for n in found.reads if level[n] == i] for i in range(depth)]


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
