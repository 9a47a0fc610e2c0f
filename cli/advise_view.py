"""What a sweep looks like on a terminal: the frontier, the ceilings, the prices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fitcheck.cli.output import harmless
from fitcheck.cli.table import flowing
from fitcheck.cli.verdict import LABEL, rows as labelled
from fitcheck.cli.words import command_lines, count, settings_words, whole_mib
from fitcheck.engine.advice import GPU, Advice, Limit, Row
from fitcheck.engine.advisor_grid import count as count_true
from fitcheck.engine.spelling import spelled
from fitcheck.engine.template import MIB

MOST_ROWS = 12  # of the frontier; --json has all
MOST_SPLITS = 6
MOST_REASONS = 4
MOST_VALUES = 8  # of an axis


def advice_view(advice: Advice, width: int) -> list[RenderableType]:
    """Everything that is printed, from top to bottom."""
    parts = [*header(advice, width), "", *swept(advice), ""]
    parts += frontier(advice, width) if advice.frontier else nothing_fits(advice)
    parts += ["", *ceilings(advice), "", *prices(advice)]
    return parts


def header(advice: Advice, width: int) -> list[RenderableType]:
    """The model, the card or cards, and the flags that are held fixed."""
    prepared, cards = advice.anchor.prepared, advice.others.get(GPU, ())
    title = Text().append(harmless(prepared.model.name), style="bold")
    if cards:
        title.append(" on ").append(f"{len(cards)} cards", style="bold")
    else:
        title.append(" on " if prepared.card.listed else " on a ")
        title.append(prepared.card.title, style="bold")
    facts = [(harmless(prepared.model.source), "dim")]
    parameters = advice.anchor.get("parameters")
    if parameters is not None:
        facts.insert(0, (f"{count(parameters)} parameters", "dim"))
    if not cards:
        facts.append((f"{whole_mib(usable(advice))} MiB usable", "dim"))
    left_out = {*advice.axes, *advice.others, *advice.plan.held}
    flags = advice.rules.flags
    kept = {n: f for n, f in flags.flags.items() if n not in left_out}
    settings = [
        (words, "" if changed else "dim")
        for words, changed in settings_words(flags, prepared.settings, kept)
    ]
    return [title, *flowing(facts, width), *flowing(settings, width)]


def usable(advice: Advice) -> int:
    """Bytes that the anchor's card can give; that of a card without a file is computed."""
    return int(advice.anchor.get("usable", advice.anchor.prepared.card.usable))


def swept(advice: Advice) -> list[RenderableType]:
    """The values of each axis, and how many points fit."""
    facts: list[tuple[str, RenderableType]] = []
    for axis in advice.plan.axes:
        label = axis.option.removeprefix("--").replace("-", " ")
        facts.append((label, listed([f"{v:,}" for v in advice.axes[axis.flag]])))
    for name, values in advice.others.items():
        flag = advice.rules.flags.flags.get(name)
        option = "--gpu" if flag is None else flag.option
        words = [str(v) if flag is None else setting(flag, v) for v in values]
        facts.append(("and", harmless(f"{option.removeprefix('--')}: {listed(words)}")))
    fitting, size = advice.fitting_count, advice.grid_size
    facts.append(("points", f"{fitting:,} of {size:,} fit"))
    if len(advice.blocks) > 1:
        facts += [("", harmless(text)) for text in counts(advice)[:MOST_ROWS]]
    facts += [
        ("refused", harmless(f"{points:,} points: {says}"))
        for says, points in list(advice.refusals.items())[:MOST_REASONS]
    ]
    return [labelled(facts)]


def counts(advice: Advice) -> list[str]:
    """How many points fit of each combination of what is swept beside the axes."""
    found = []
    for block in advice.blocks:
        flags = advice.rules.flags.flags
        words = [w for n, v in block.settings.items() for w in spelled(flags[n], v)]
        words += ["--gpu", block.gpu] if block.gpu is not None else []
        size = advice.grid_size // len(advice.blocks)
        found.append(f"{count_true(block.fits):,} of {size:,} with {' '.join(words)}")
    return found


def setting(flag: Any, value: Any) -> str:
    """A value of a swept flag as it is typed, without the option where that says it."""
    words = spelled(flag, value)
    return words[1] if len(words) > 1 else words[0].removeprefix("--")


def listed(words: Sequence[str]) -> str:
    """Words with commas, of many the first ones and the last."""
    if len(words) > MOST_VALUES:
        return f"{', '.join(words[: MOST_VALUES - 2])}, ... {words[-1]} ({len(words):,} values)"
    return ", ".join(words)


def frontier(advice: Advice, width: int) -> list[RenderableType]:
    """The rows of the frontier, and the commands of the recommended and of a safe one."""
    rows = advice.frontier
    parts: list[RenderableType] = [
        heading("Frontier", "nothing that fits has more of one without less of the other"),
        row_table(advice, rows),
    ]
    if len(rows) > MOST_ROWS:
        parts.append(Text(f"... and {len(rows) - MOST_ROWS:,} more rows, see --json", style="dim"))
    best, safe = rows[0], advice.safest
    parts.append("")
    if best.status.safe:
        return parts + told(advice, "recommended", best, f"{point(advice, best)}, safe", width)
    warned = "only the point estimate fits, so the run may still run out of memory"
    said = f"{point(advice, best)}, {best.status.title.lower()}: {warned}"
    parts += told(advice, "at the edge", best, said, width)
    if safe is None:
        return [*parts, labelled([("safe", "no point of this sweep is safe")])]
    return parts + told(advice, "safe", safe, point(advice, safe), width)


def point(advice: Advice, row: Row) -> str:
    """The objectives of a row and its total."""
    names = ", ".join(f"{o.title} {row.objectives[o.id]:,}" for o in advice.plan.objectives)
    return f"{names}, {whole_mib(row.total)} MiB"


def told(advice: Advice, label: str, row: Row, says: str, width: int) -> list[RenderableType]:
    """What is said of a row, and its command below."""
    indent = " " * (LABEL + 2)
    words = advice.words(row)
    room = width - len(indent) if os.name != "nt" else 1 << 20  # cmd.exe has no backslash
    lines = command_lines(words, room) if words else []
    return [labelled([(label, says)]), *(f"{indent}{harmless(line)}" for line in lines)]


def row_table(advice: Advice, rows: Sequence[Row]) -> Table:
    """One line a row, best first."""
    view = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for objective in advice.plan.objectives:
        view.add_column(objective.title, justify="right", no_wrap=True)
    view.add_column("MiB", justify="right", no_wrap=True)
    view.add_column("", no_wrap=True)
    view.add_column(" x ".join(name.replace("_", " ") for name in advice.plan.splits))
    if advice.others:
        view.add_column("with")
    for row in rows[:MOST_ROWS]:
        splits = ["×".join(f"{n:,}" for n in split) for split in row.splits]
        more = f" and {len(splits) - MOST_SPLITS} more" if len(splits) > MOST_SPLITS else ""
        cells: list[Any] = [f"{row.objectives[o.id]:,}" for o in advice.plan.objectives]
        cells += [whole_mib(row.total), Text(row.status.title.lower(), style=row.status.style)]
        cells += [", ".join(splits[:MOST_SPLITS]) + more]
        cells += [beside(advice, row)] if advice.others else []
        view.add_row(*cells)
    return view


def beside(advice: Advice, row: Row) -> str:
    """What else a row takes: the card, and the values of the other swept flags."""
    flags = advice.rules.flags.flags
    words = [row.card.id] if GPU in advice.others else []
    return ", ".join([*words, *(setting(flags[n], value) for n, value in row.settings.items())])


def nothing_fits(advice: Advice) -> list[RenderableType]:
    """The verdict where no point fits, with the smallest one."""
    need, room = whole_mib(advice.anchor[advice.plan.price]), whole_mib(usable(advice))
    card = advice.anchor.prepared.card.title
    return [
        Text()
        .append(" NOTHING FITS ", style="bold reverse red")
        .append(f" the smallest point ({anchor_words(advice)}) needs {need} MiB, and {room} MiB ")
        .append(f"are usable on {card}")
    ]


def ceilings(advice: Advice) -> list[RenderableType]:
    """Where each axis ends."""
    view = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    view.add_column("", style="dim")
    view.add_column("", justify="right")
    view.add_column("", justify="right")
    for limit in advice.ceilings:
        view.add_row(limit.title, most(limit), f"{whole_mib(limit.total)} MiB{reached(limit)}")
    return [heading("Ceilings", f"each alone, from {anchor_words(advice)}"), view]


def most(limit: Limit) -> str:
    return f"{limit.value:,}{' or more' if limit.capped else ''}"


def reached(limit: Limit) -> str:
    return " at 1, which does not fit" if limit.value == 0 else ""


def prices(advice: Advice) -> list[RenderableType]:
    """What a step along each axis costs."""
    view = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    for position in range(4):
        view.add_column("", justify="right" if position % 2 else "left")
    for price in advice.prices:
        amount = price.delta / MIB
        view.add_row(
            Text(price.title, style="dim"),
            f"{price.before:,}",
            f"-> {price.after:,}",
            f"{amount:+,.2f} MiB",
        )
    return [heading("Prices", "of one step from there; tokens/step is work, not speed"), view]


def anchor_words(advice: Advice) -> str:
    """The point that ceilings and prices are measured at."""
    values = advice.anchor.prepared.settings.values
    flags = advice.rules.flags.flags
    words = [f"{flags[n].option.removeprefix('--')} {values[n]:,}" for n in advice.plan.flags]
    words += [setting(flags[name], values[name]) for name in advice.others if name != GPU]
    words += [advice.anchor.prepared.card.id] if GPU in advice.others else []
    return ", ".join(words)


def heading(title: str, says: str) -> Text:
    return Text().append(title, style="bold").append(f"  {says}", style="dim")
