"""The verdict of an estimate, what it rests on, and what would make it fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fitcheck.cli.output import harmless
from fitcheck.cli.words import command_lines, repeated, whole_mib
from fitcheck.engine.explain import lowered
from fitcheck.engine.formula import HIGH, LOW
from fitcheck.engine.hints import SAFE, Proposal, proposals, smallest_card
from fitcheck.engine.spelling import spelled

if TYPE_CHECKING:
    from fitcheck.cli.answer import Request
    from fitcheck.engine.report import Report


LABEL = 11  # columns of the labels, so that the blocks stand below each other


def verdict_view(report: Report, request: Request | None, width: int) -> list[RenderableType]:
    """The verdict line, then one row for each thing to know."""
    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True)
    line.add_row(
        Text(f" {report.title} ", style=f"bold reverse {report.style}".strip()),
        harmless("; ".join(report.reasons)),
    )
    parts: list[RenderableType] = [line, rows(facts(report))]
    if not report.safe:
        parts += advice(report, request, width)
    return parts


def rows(facts: Sequence[tuple[str, RenderableType]]) -> Table:
    """Labels and what they say."""
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(style="dim", no_wrap=True, width=LABEL)
    grid.add_column(ratio=1, overflow="fold")  # a path longer than a line is shown in full
    for label, text in facts:
        grid.add_row(label, text)
    return grid


def facts(report: Report) -> list[tuple[str, RenderableType]]:
    """Headroom, micro-batches, and what makes this answer less certain."""
    found: list[tuple[str, RenderableType]] = []
    headroom, percent = report.get("headroom"), report.get("headroom_share")
    if headroom is not None:
        text = f"{'-' if headroom < 0 else ''}{whole_mib(abs(headroom))} MiB"
        if percent is not None:
            text += f" ({float(percent) * 100:,.1f} % of the usable memory)"
        found.append(("headroom", text))
    most, advised = report.get("max_batch_size"), report.get("recommended_batch_size")
    if most is not None and advised is not None:
        capped = getattr(report.run.searches.get("max_batch_size"), "capped", False)
        text = f"at most {most:,}{' or more' if capped else ''}, recommended {advised:,}"
        effective = report.get("effective_batch_size")
        step = f"; effective batch {effective:,}" if effective is not None else ""
        found.append(("micro-batch", (text if most else "not even 1 fits") + step))
    if spread := band(report):
        found.append(("spread", spread))
    found += [(label, harmless(text)) for label, text in report.facts()]
    if report.overlays:
        found.append(("rules", harmless(f"changed by {', '.join(report.overlays)}")))
    found += [("not settled", harmless(text)) for text in report.unsettled]
    return found


def band(report: Report) -> str:
    """Both ends of the total, and which fitted components they come from; empty where equal."""
    low, high = (whole_mib(report.get(name, 0)) for name in ("total_low", "total_high"))
    if low == high:
        return ""
    ends = [report.run.at_band(end) for end in (LOW, HIGH)]
    fitted = [
        lowered(c.title) for c in report.components if len({r.value(c.id) for r in ends}) == 2
    ]
    source = f" from the fitted {' and '.join(fitted)} alone" if fitted else ""
    return f"{low} to {high} MiB{source}; the estimate may be off by more"


def advice(report: Report, request: Request | None, width: int) -> list[RenderableType]:
    """What would fit and what would be safe, each with its command, and a card for it as it is."""
    parts: list[RenderableType] = []
    fits = bool(report.get("fits", True))
    said: tuple[str, ...] = ()
    found, offer = proposals(report.prepared), smallest_card(report.prepared)
    if not fits and not found:
        parts.append(rows([("would fit", "none of the changes that fitcheck tries is enough")]))
    for proposal in found:
        label = "to be safe" if proposal.goal == SAFE else "would fit"
        parts.append(rows([(label, proposal_text(report, proposal, proposal.says != said))]))
        said = proposal.says
        words = request and repeated(report, request, proposal.changes)
        indent = " " * (LABEL + 2)
        room = width - len(indent) if os.name != "nt" else 1 << 20  # cmd.exe has no backslash
        lines = command_lines(words, room) if words else []
        parts += [f"{indent}{harmless(line)}" for line in lines]
    if offer is not None and (offer.safe or not fits):
        card = offer.card
        says = f"{card.title} (--gpu {card.id}), {whole_mib(card.usable)} MiB usable"
        parts.append(rows([("or on", f"{says}: {offer.title}")]))
    elif not fits and not found:
        parts.append(rows([("or on", "no single card in the database")]))
    return parts


def proposal_text(report: Report, proposal: Proposal, why: bool) -> Text:
    """The changed flags, the new total with its verdict, and why it helps."""
    flags = report.prepared.rules.flags
    options = [" ".join(spelled(flags.flags[n], v)) for n, v in proposal.changes.items()]
    text = Text().append(" ".join(options), style="bold")
    text.append(f": {whole_mib(proposal.total)} MiB, {proposal.title}")
    return text.append(f" ({'; '.join(proposal.says)})" if why else "", style="dim")
