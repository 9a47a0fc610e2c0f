"""What `fitcheck optimize` prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from fitcheck.cli.output import harmless
from fitcheck.cli.screen import console, show
from fitcheck.cli.table import header
from fitcheck.cli.verdict import LABEL, rows
from fitcheck.cli.words import command_lines, repeated, whole_mib
from fitcheck.engine.hints import FITS, SAFE
from fitcheck.engine.optimizing import RECOMMENDED
from fitcheck.engine.spelling import spelled

if TYPE_CHECKING:
    from fitcheck.cli.answer import Request
    from fitcheck.engine.flags import FlagSet
    from fitcheck.engine.hints import Offer, Proposal
    from fitcheck.engine.optimizing import Optimized, Step
    from fitcheck.engine.report import Report

LABELS = {RECOMMENDED: "recommended", FITS: "would fit", SAFE: "to be safe"}
INDENT = " " * (LABEL + 2)


def print_optimized(report: Report, found: Optimized, request: Request, no_color: bool) -> None:
    """The run as it is, then each proposal with its steps and its command."""
    target = console(no_color)
    line = Text(f" {report.title} ", style=f"bold reverse {report.style}".strip())
    parts: list[RenderableType] = [
        *header(report, target.width),
        "",
        line.append(f"  {'; '.join(report.reasons)}", style="not bold not reverse default"),
        *ceiling(report),
    ]
    for proposal, steps in zip(found.proposals, found.steps, strict=True):
        parts += ["", *proposed(report, request, proposal, steps, target.width)]
    parts += ["", *elsewhere(report, found)] if not found.safe else []
    show(parts, target=target)


def ceiling(report: Report) -> list[RenderableType]:
    """The most that fits of what the mode counts."""
    assert report.prepared.rules.hints is not None
    shown = report.prepared.rules.hints.data.get("compare")
    if shown is None:
        return []
    most = report.run.value(shown["most"]["quantity"])
    capped = report.run.searches[shown["most"]["quantity"]].capped
    text = f"{most:,}{' or more' if capped else ''} by the point estimate"
    return [rows([("ceiling", f"{shown['most']['label']} {text}")])]


def options_words(flags: FlagSet, proposal: Proposal | Step) -> str:
    return " ".join(" ".join(spelled(flags.flags[n], v)) for n, v in proposal.changes.items())


def proposed(
    report: Report, request: Request, proposal: Proposal, steps: Sequence[Step], width: int
) -> list[RenderableType]:
    """One proposal: what it changes, the new total, each step, and the command."""
    flags = report.prepared.rules.flags
    text = Text().append(options_words(flags, proposal) or "as it is", style="bold")
    text.append(f": {whole_mib(proposal.total)} MiB, {proposal.title}")
    parts: list[RenderableType] = [rows([(LABELS[proposal.goal], text)])]
    if len(steps) > 1:
        parts += [step_rows(flags, steps)]
    else:
        parts.append(rows([("", Text("; ".join(proposal.says), style="dim"))]))
    words = repeated(report, request, proposal.changes) if proposal.changes else None
    room = width - len(INDENT) if os.name != "nt" else 1 << 20  # cmd.exe has no backslash
    return (
        parts + [f"{INDENT}{harmless(line)}" for line in command_lines(words, room)]
        if words
        else parts
    )


def step_rows(flags: FlagSet, steps: Sequence[Step]) -> RenderableType:
    """Each step with the total after it; a reason is said once."""
    lines: list[tuple[str, RenderableType]] = []
    said = ""
    for number, step in enumerate(steps, 1):
        text = Text(f"{options_words(flags, step)}: {whole_mib(step.total)} MiB, {step.title}")
        if step.says != said:
            text.append(f" ({step.says})", style="dim")
        said = step.says
        lines.append((f"  step {number}", text))
    return rows(lines)


def elsewhere(report: Report, found: Optimized) -> list[RenderableType]:
    """Where no change is enough, the run after all of them; and the smallest card that is."""
    flags, last, offer = report.prepared.rules.flags, found.exhausted, found.offer
    lines: list[tuple[str, RenderableType]] = []
    if last is not None:
        words = options_words(flags, last) or "nothing that could be changed"
        lines.append(
            (
                "would fit",
                f"no change is enough: with {words} it still takes {whole_mib(last.total)} MiB",
            )
        )
    if offer is not None:
        lines.append(("then on" if last is not None else "or on", card_words(offer)))
    elif last is not None:
        lines.append(("then on", "no single card in the database"))
    return [rows(lines)] if lines else []


def card_words(offer: Offer) -> str:
    card = offer.card
    return f"{card.title} (--gpu {card.id}), {whole_mib(card.usable)} MiB usable: {offer.title}"
