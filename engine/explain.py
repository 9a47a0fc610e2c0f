"""An estimate in plain English: what is large and why, what a change is worth, what is unsure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .grades import GRADES
from .hints import SAFE, price_hints, proposals, smallest_card
from .report import sentence, without_class
from .spelling import spelled
from .template import mib

if TYPE_CHECKING:
    from .report import Component, Report

DIRECTIONS = {
    "under": "the estimate may be too low",
    "over": "the estimate may be too high",
    "unknown": "the estimate may be off either way",
}
LEVELS = ("warn", "tell", "note")  # caveats in this order
WIDTH = 88


def explain(report: Report, width: int = WIDTH) -> str:
    """
    The explanation, as plain text.

    Parameters
    ----------
    report : Report
        A finished estimate; every price is a second full estimate of it.
    width : int
        Columns at which sentences are wrapped.

    Returns
    -------
    str
        Paragraphs: the largest component, priced changes, verdict, ceilings, caveats, evidence.
    """
    paragraphs = [
        wrapped(largest_component(report), width),
        prices(report, width),
        "\n".join(wrapped(line, width) for line in verdict_lines(report)),
        listed("One at a time, all else as it is:", ceilings(report), width),
        listed("Caveats:", caveats(report), width),
        listed("Evidence:", evidence(report), width),
    ]
    return "\n\n".join(p for p in paragraphs if p)


def prices(report: Report, width: int) -> str:
    """The priced changes in columns, or without them where a line would not have room."""
    hints = price_hints(report.prepared)
    lines = [f"  {hint.text}" for hint in hints]
    if any(len(line) > width for line in lines):
        return "\n".join(wrapped(hint.short, width, "  ", "      ") for hint in hints)
    return "\n".join(lines)


def wrapped(text: str, width: int, first: str = "", later: str = "") -> str:
    """One paragraph, never broken inside a word or an option."""
    import textwrap

    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def listed(title: str, lines: Iterable[str], width: int) -> str:
    """A titled list, empty where it has no line."""
    rows = [wrapped(line, width, "  - ", "    ") for line in lines]
    return "\n".join([title, *rows]) if rows else ""


def peak(report: Report) -> str:
    """The first phase that reaches the maximum."""
    return max(report.phases, key=lambda phase: report.phases[phase])


def largest_component(report: Report) -> str:
    """The largest of what is there at the peak, its share, and why it is so large."""
    phase = peak(report)
    there = [c for c in report.components if phase in c.phases or "always" in c.phases]
    total = report.phases[phase]
    if not total:
        return ""
    largest = max(there, key=lambda c: c.bytes)
    text = (
        f"Largest component: {lowered(largest.title)} ({mib(largest.bytes)}, "
        f"{largest.bytes / total:.0%}) — {largest.says}."
    )
    return f"{text} {largest_part(report, largest)}".rstrip()


def largest_part(report: Report, component: Component) -> str:
    """What the quantity says that makes up more than half of a component; nothing if none does."""
    rules, run = report.prepared.rules, report.run
    formula = rules.formula(component.id)
    used = rules.names_of(formula, run.chosen[(component.id, 0)])
    parts = [rules.formula(name) for name in formula.reads if name in used]
    parts = [p for p in parts if p.per is None and p.unit.text == "byte" and p.cases]
    if not parts:
        return ""
    part = max(parts, key=lambda p: run.value(p.id))
    if not component.bytes < 2 * run.value(part.id) <= 2 * component.bytes:
        return ""
    return f"{part.title}: {sentence(run, part, run.chosen[(part.id, 0)].says)}."


def lowered(title: str) -> str:
    """A title inside a sentence; a first word such as LoRA or CUDA keeps its capitals."""
    first = title.split()[0] if title.split() else ""
    return title[:1].lower() + title[1:] if first[1:].islower() else title


def verdict_lines(report: Report) -> list[str]:
    """The verdict with its reasons, and what would change it where it is not safe."""
    lines = [f"{report.title}: {'; '.join(report.reasons)}."]
    lines += [f"Not settled: {text}." for text in report.unsettled]
    prepared = report.prepared
    if report.safe or prepared.rules.hints is None:
        return lines
    found, offer = proposals(prepared), smallest_card(prepared)
    fits = bool(report.run.value(prepared.rules.hints.data["fits"]))
    if not fits and not found:
        lines.append("No combination of the changes that are known here makes it fit.")
    said: tuple[str, ...] = ()
    for proposal in found:
        start = "It would be safe with" if proposal.goal == SAFE else "It would fit with"
        options = options_of(report, proposal.changes)
        why = "" if proposal.says == said else f": {'; '.join(proposal.says)}"
        lines.append(f"{start} {options} ({mib(proposal.total)}, {proposal.title}){why}.")
        said = proposal.says
    if offer is not None and (offer.safe or not fits):
        card = f"{offer.card.title} (--gpu {offer.card.id}, {mib(offer.card.usable)} usable"
        lines.append(f"As it is, it would fit on {card}, {offer.title}).")
    return lines


def ceilings(report: Report) -> list[str]:
    """How far each flag could go by itself, from every quantity that searches for what fits."""
    rules, found = report.prepared.rules, []
    fits = rules.hints and rules.hints.data["fits"]
    for formula in sorted(rules.formulas.values(), key=lambda f: (f.order, f.id)):
        if formula.search and formula.search.text == fits and formula.id in report:
            value, search = report[formula.id], report.run.searches[formula.id]
            more = " or more" if search.capped else ""
            found.append(f"{lowered(formula.title)}: {value:,}{more}")
    return found


def options_of(report: Report, changes: Mapping[str, object]) -> str:
    """Changed flags as they are typed."""
    flags = report.prepared.rules.flags.flags
    return " ".join(word for name, value in changes.items() for word in spelled(flags[name], value))


def caveats(report: Report) -> list[str]:
    """Every limit that holds, gravest first, with the direction of the error."""
    found = sorted(
        (c for c in report.caveats if c.level in LEVELS), key=lambda c: LEVELS.index(c.level)
    )
    model = report.prepared.model
    said = (*model.warnings, *map(without_class, model.absent))
    lines = [w.rstrip(".") + "." for w in said]
    for caveat in found:
        direction = DIRECTIONS.get(caveat.direction)
        note = f" ({direction})" if direction and caveat.level != "tell" else ""
        lines.append(f"{caveat.says.rstrip('.')}{note}.")
    return lines


def evidence(report: Report) -> list[str]:
    """The components by how well their figure is supported, best first."""
    groups: dict[str, list[Component]] = {}
    for component in sorted(
        (c for c in report.components if c.shown), key=lambda c: -GRADES.index(c.grade.grade)
    ):
        groups.setdefault(str(component.grade), []).append(component)
    return [
        f"{grade}: {', '.join(lowered(c.title) for c in members)}"
        for grade, members in groups.items()
    ]
