"""The lines of the table: each component with its size, share, bar, phases and evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from fitcheck.cli.bars import bar
from fitcheck.cli.words import gib, whole_mib
from fitcheck.engine.explain import peak as peak_phase
from fitcheck.engine.grades import Grade, weakest
from fitcheck.engine.record import record

if TYPE_CHECKING:
    from fitcheck.engine.report import Component, Report

LIVE, DEAD, PEAK = "●", "·", "▲"
GAP = 2
SHORTEST_TITLE, LONGEST_TITLE = 9, 28
NARROW_BAR, GOOD_BAR, WIDE_BAR = 10, 16, 40
SHARE, EVIDENCE = "of total", "evidence"
BARS = ("full bar = usable memory", "full = usable", "of usable")  # the longest that has room

# One colour for each component, in order, out of the terminal's own palette: that is what its
# owner can read on the ground that it has.
PALETTE = ("bright_blue", "cyan", "magenta", "yellow", "green", "bright_red", "bright_black")


def colour_of(position: int) -> str:
    return PALETTE[position % len(PALETTE)]


def lives(component: Component, phase: str) -> bool:
    """Whether a component is there in a phase."""
    return phase in component.phases or "always" in component.phases


def initials(phases: Iterable[str]) -> dict[str, str]:
    """A capital for each phase; more letters where two would be the same."""
    names, length = list(phases), 1
    while len({name[:length] for name in names}) < len(names) and length < 4:
        length += 1
    return {name: name[:length].capitalize() for name in names}


@record
class Layout:
    """Columns for titles and for bars (0 for none), and how a grade is written."""

    titles: int
    bars: int
    written: Callable[[Grade], str]


def with_cards(grade: Grade) -> str:
    """A grade with the cards of its measurements: `measured T4`."""
    return f"{grade.grade} {', '.join(c.upper() for c in grade.cards)}".rstrip()


def alone(grade: Grade) -> str:
    return grade.grade


def layout(report: Report, width: int) -> Layout:
    """
    The bars take what the other columns leave.

    Rows of evidence are shown beside good bars; the cards stay where they have room at all.
    """
    numbers = [whole_mib(n) for n in (report.phases[peak_phase(report)], *sizes(report))]
    titles = min(max(cell_len(c.title) for c in lines_of(report)), LONGEST_TITLE)
    marks = sum(len(letter) + 1 for letter in initials(report.phases).values()) - 1
    left = width - titles - max(map(len, numbers)) - len(SHARE) - marks - 4 * GAP
    forms: tuple[tuple[Callable[[Grade], str], int], ...] = (
        (str, GOOD_BAR),
        (with_cards, NARROW_BAR),
        (alone, NARROW_BAR),
        (with_cards, 0),
        (alone, 0),
    )
    for written, wanted in forms:
        grades = (written(c.grade) for c in lines_of(report))
        room = left - max(map(len, (*grades, EVIDENCE)))
        if wanted and room - GAP >= wanted:
            return Layout(titles, min(room - GAP, WIDE_BAR), written)
        if not wanted and room >= 0:
            return Layout(titles, 0, written)
    return Layout(max(titles + room, SHORTEST_TITLE), 0, alone)  # a figure is never cut


def lines_of(report: Report) -> list[Component]:
    """The components that have a line of their own."""
    return [c for c in report.components if c.shown]


def sizes(report: Report) -> list[int]:
    return [c.bytes for c in lines_of(report)]


def marks(letters: Mapping[str, str], signs: Mapping[str, tuple[str, str]]) -> Text:
    """A sign with its style for each phase, each below the phase's letter."""
    text = Text(no_wrap=True)
    for phase, letter in letters.items():
        sign, style = signs[phase]
        text.append(" " if text else "").append(sign.ljust(len(letter)), style=style)
    return text


def life(component: Component, letters: Mapping[str, str], colour: str) -> Text:
    """A dot in each phase in which a component is there."""
    alive, dead = (LIVE, colour), (DEAD, "dim")
    return marks(letters, {p: alive if lives(component, p) else dead for p in letters})


def component_table(report: Report, width: int) -> Table:
    """One line a component, then the total with a mark at the phase that reaches it."""
    peak, plan, letters = peak_phase(report), layout(report, width), initials(report.phases)
    total, usable = report.phases[peak], report.get("usable", report.prepared.card.usable)

    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("component", no_wrap=True, overflow="ellipsis", width=plan.titles)
    table.add_column("MiB", justify="right", no_wrap=True)
    table.add_column(SHARE, justify="right", no_wrap=True)
    if plan.bars:
        head = next(h for h in BARS if len(h) <= plan.bars)
        table.add_column(head, no_wrap=True, width=plan.bars)
    heads = {p: (letter, "bold" if p == peak else "") for p, letter in letters.items()}
    table.add_column(marks(letters, heads), no_wrap=True)
    table.add_column(EVIDENCE, no_wrap=True, overflow="ellipsis")

    def line(*start: str, chart: Text, signs: Text, grade: Grade, style: str = "") -> None:
        middle: list[RenderableType] = [chart] if plan.bars else []
        table.add_row(*start, *middle, signs, plan.written(grade), style=style)

    for position, component in enumerate(lines_of(report)):
        there = lives(component, peak) and total
        line(
            component.title,
            whole_mib(component.bytes),
            f"{component.bytes / total * 100:.1f} %" if there else "-",
            chart=Text(bar(component.bytes, usable, plan.bars), style=colour_of(position)),
            signs=life(component, letters, colour_of(position)),
            grade=component.grade,
        )
    table.add_row(*(Rule(style="bright_black") for _ in table.columns))
    line(
        "total",
        whole_mib(total),
        "100.0 %",
        chart=Text(gib(total), style="not bold"),
        signs=marks(letters, {p: (PEAK if p == peak else " ", "") for p in letters}),
        grade=weakest(c.grade for c in lines_of(report)),
        style="bold",
    )
    return table
