"""What `fitcheck check` prints of a configuration, before its estimate."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fitcheck.cli.annotations import annotation
from fitcheck.cli.output import harmless, say, write
from fitcheck.cli.words import command_lines, whole_mib
from fitcheck.engine.importing.mapping import text_of
from fitcheck.engine.spelling import spelled

if TYPE_CHECKING:
    from fitcheck.cli.checked import Checked
    from fitcheck.engine.importing.applying import Imported
    from fitcheck.engine.importing.document import Item
    from fitcheck.engine.report import Report

DIRECTIONS = {"under": "may be too low", "over": "may be too high", "either": "may be off"}
LABEL = 12


def print_checked(checked: Checked, values: dict[str, Any]) -> None:
    """One file: what was read, and the estimate."""
    if checked.error is not None:
        say("error", str(checked.error), values["no_color"])
        return
    from fitcheck.cli.screen import print_estimate

    width = shutil.get_terminal_size().columns
    write(harmless("\n".join(lines(checked, width, values["verbose"]))))
    write("")
    assert checked.report is not None and checked.request is not None
    print_estimate(checked.report, checked.request, {**values, "explain": False, "fit": None})
    card = checked.report.prepared.card
    if card.note:
        say("note", card.note, values["no_color"])
    said = checked.imported
    for text in (*checked.report.remarks, *(said.notes() if said else ())):
        say("note", text, values["no_color"])
    for text in checked.report.warnings:
        say("warning", text, values["no_color"])


def lines(checked: Checked, width: int, verbose: bool) -> Iterator[str]:
    """The format, the command, and what became of every key."""
    said = checked.imported
    title = said.importer.title if said else "a saved run of fitcheck"
    yield f"{checked.path}: {title}"
    if checked.configuration is not None:
        yield from row("because", checked.configuration.why, width)
    parts = command_lines(list(checked.command), width - LABEL)
    yield f"{'the same as':<{LABEL}}{parts[0]}"
    yield from (f"{'':<{LABEL}}{part}" for part in parts[1:])
    if said is None:
        return
    for number, text in enumerate(used_lines(said, checked.report)):
        yield from row("used" if not number else "", text, width)
    flags = checked.report.prepared.rules.flags if checked.report else None
    if flags is not None and said.defaults:
        words = [
            w
            for n, v in said.defaults.items()
            for w in spelled(flags.flags[n], flags.check(flags.flags[n], v))
        ]
        yield from row("by default", " ".join(words), width)
    for direction, label in DIRECTIONS.items():
        found = [u for u in said.unpriced if u.direction == direction]
        for number, unpriced in enumerate(found):
            text = f"{named(unpriced.item)}: {unpriced.says}"
            yield from row("not priced" if not number else "", f"{label}: {text}", width)
    for number, item in enumerate(said.unknown):
        text = f"{named(item)}: whatever it costs is in no estimate"
        yield from row("not known" if not number else "", text, width)
    for number, text in enumerate(said.assumed):
        yield from row("assumed" if not number else "", text, width)
    if said.free:
        names = ", ".join(item.key for item in said.free)
        count = f"{len(said.free)} key{'s' * (len(said.free) != 1)}"
        yield from row("no memory", f"{count}: {names}" if verbose else count, width)


def used_lines(said: Imported, report: Report | None) -> Iterator[str]:
    """Each key with the options that it became."""
    assert report is not None
    flags = report.prepared.rules.flags
    for used in said.used:
        words = [w for n, v in used.flags.items() for w in spelled(flags.flags[n], v)]
        value = text_of(used.item.value)[:40]
        meaning = " ".join(words) if words else "as other keys say"
        yield f"{named(used.item)} {value} -> {meaning}"


def named(item: Item) -> str:
    """A key with its line, and the file where that is another one."""
    where = f"{os.path.basename(item.path)}, " if item.path else ""
    return f"{item.key} ({where}line {item.line})" if item.line else item.key


def row(label: str, text: str, width: int) -> list[str]:
    """A label and a text, wrapped."""
    wrapped = textwrap.wrap(text, max(width - LABEL, 30)) or [""]
    return [f"{label if not n else '':<{LABEL}}{line}" for n, line in enumerate(wrapped)]


def print_summary(found: Sequence[Checked]) -> None:
    """One line a file, at the end of several."""
    write("")
    wide = max(len(checked.path) for checked in found)
    for checked in found:
        write(harmless(f"{checked.path:<{wide}}  {verdict(checked)}"))


def verdict(checked: Checked) -> str:
    """The verdict in a few words."""
    report = checked.report
    if report is None:
        return "could not be estimated"
    needed, room = whole_mib(report["total"]), whole_mib(report["usable"])
    return f"{report.title}: {needed} MiB of {room} MiB"


def annotate(checked: Checked) -> str:
    """The line of a GitHub workflow: an error where it does not fit or could not be read."""
    report = checked.report
    if report is None:
        says = str(checked.error).split("\n")[0]
        return annotation("error", checked.path, checked.line, "fitcheck", says)
    card = report.prepared.card.title
    reasons = "; ".join(report.reasons)
    says = f"{verdict(checked)} on {card}. {reasons}".strip()
    if not report.safe:
        from fitcheck.engine.hints import proposals

        flags = report.prepared.rules.flags
        for proposal in proposals(report.prepared)[:1]:
            options = [w for n, v in proposal.changes.items() for w in spelled(flags.flags[n], v)]
            says += f". {proposal.title} with {' '.join(options)} ({whole_mib(proposal.total)} MiB)"
    level = "notice" if report.safe else ("warning" if report.get("fits", True) else "error")
    return annotation(level, checked.path, checked.line, f"fitcheck: {report.title}", says)
