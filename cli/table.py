"""What an estimate looks like on a terminal, from the model it is of to what would make it fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from fitcheck.cli.bars import capacity_bar
from fitcheck.cli.components import colour_of, component_table, initials, lines_of, lives
from fitcheck.cli.output import harmless
from fitcheck.cli.verdict import verdict_view
from fitcheck.cli.words import count, settings_words, whole_mib
from fitcheck.engine.explain import peak as peak_phase

if TYPE_CHECKING:
    from fitcheck.cli.answer import Request
    from fitcheck.engine.report import Report

BETWEEN = " · "


def estimate_view(report: Report, request: Request | None, width: int) -> list[RenderableType]:
    """Everything that is printed, from top to bottom; without a request no command is proposed."""
    return [
        *header(report, width),
        "",
        component_table(report, width),
        "",
        *capacity(report, width),
        *rank_tables(report),
        "",
        *verdict_view(report, request, width),
    ]


def rank_tables(report: Report) -> list[RenderableType]:
    """What its mode shows item by item, such as the cards of a pipeline."""
    if report.prepared.rules.mode is None:
        return []
    from rich.table import Table

    from fitcheck.engine.mode_tables import BYTES, tables

    found: list[RenderableType] = []
    for shown in tables(report):
        view = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        view.add_column("", justify="right")
        for head, unit in zip(shown.columns, shown.units, strict=True):
            view.add_column(f"{head} MiB" if unit == BYTES else head, justify="right")
        for index, row in enumerate(shown.rows):
            cells = (
                whole_mib(value) if unit == BYTES else f"{value:,}"
                for value, unit in zip(row, shown.units, strict=True)
            )
            view.add_row(str(index), *cells)
        found += ["", Text(shown.title, style="dim"), view]
    return found


def flowing(words: Iterable[tuple[str, str]], width: int) -> list[RenderableType]:
    """Words with their styles in as few lines as they need, none broken inside."""
    lines: list[Text] = []
    for word, style in words:
        if lines and cell_len(lines[-1].plain + BETWEEN + word) <= width:
            lines[-1].append(BETWEEN, style="dim")
        else:
            lines.append(Text())
        lines[-1].append(word, style=style)
    return [*lines]


def header(report: Report, width: int) -> list[RenderableType]:
    """What was estimated: model, card, source, settings (dim where they are the default)."""
    prepared = report.prepared
    title = Text().append(harmless(prepared.model.name), style="bold")
    title.append(" on " if prepared.card.listed or prepared.card.here else " on a ")
    title.append(prepared.card.title, style="bold")
    facts = []
    for name, says in (("parameters", "parameters"), ("trainable_parameters", "trained")):
        value = report.get(name)
        if value is not None:
            facts.append((f"{count(value)} {says}", "dim"))
    facts.append((harmless(prepared.model.source), "dim"))
    settings = [
        (words, "" if changed else "dim")
        for words, changed in settings_words(prepared.rules.flags, prepared.settings)
    ]
    return [title, *flowing(facts, width), *flowing(settings, width)]


def capacity(report: Report, width: int) -> list[RenderableType]:
    """The card as one bar with the total in it, and the level of every phase."""
    card, peak = report.prepared.card, peak_phase(report)
    total, usable = report.phases[peak], report.get("usable", report.prepared.card.usable)
    parts = [
        (c.bytes, colour_of(position))
        for position, c in enumerate(lines_of(report))
        if lives(c, peak) and c.bytes
    ]
    line = Text().append(f"{whole_mib(total)} MiB needed", style="bold")
    line.append(f", {whole_mib(usable)} MiB usable of {whole_mib(card.total)} MiB")
    levels = [
        (
            f"{letter} {phase} {whole_mib(report.phases[phase])}{' (peak)' * (phase == peak)}",
            "" if phase == peak else "dim",
        )
        for phase, letter in initials(report.phases).items()
    ]
    return [capacity_bar(parts, usable, card.total, width), line, *flowing(levels, width)]
