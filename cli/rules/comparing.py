"""`fitcheck rules diff DIR`: which numbers move, and by how much."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from fitcheck.cli.completion import complete_folder
from fitcheck.cli.rules.checking import plain
from fitcheck.cli.rules.folders import json_option, load, rules_option
from fitcheck.cli.rules.layout import Progress, columns, counted, paragraph, say
from fitcheck.cli.words import command_lines
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.rules import Rules
from fitcheck.engine.template import MIB
from fitcheck.engine.workshop.compare import Change, Comparison, Move, compare
from fitcheck.engine.workshop.golden import command
from fitcheck.engine.workshop.values import mib_text, value_text


@click.command("diff")
@click.argument("folder", metavar="DIR", shell_complete=complete_folder)
@rules_option
@json_option
def diff_command(folder: str, folders: tuple[str, ...], as_json: bool) -> int:
    """Which numbers the files of DIR move on the reference configurations, and by how much.

    Compared are the bundled rules (with --rules and FITCHECK_RULES) and the same with DIR on top.
    The exit status is 0 whether or not numbers move.
    """
    after = load(folders, folder)
    before = load(folders)
    with Progress() as progress:
        found = compare(before, after, progress)
    if as_json:
        say(json_text("rules-diff", _data(found)))
        return 0
    lines = [f"{verb} {place}" for place, verb in found.files]
    lines = [*(lines or ["Every file of the folder is as bundled."]), ""]
    for change in found.changes:
        if change.any:
            lines += _block(after, change)
    still = [c.configuration.id for c in found.changes if not c.any]
    if len(still) == len(found.changes):
        lines.append(f"No number moves in {counted(len(still), 'reference configuration')}.")
    elif still:
        lines.append(paragraph(f"Nothing moves in: {', '.join(still)}."))
    if found.untried:
        names = ", ".join(f"{case} of {formula}" for formula, case in found.untried)
        lines.append(
            paragraph(
                f"No reference configuration uses case {names}: a number that moves there is not "
                "seen here. Estimate a run of your own with and without --rules."
            )
        )
    say(*lines)
    return 0


def _block(rules: Rules, change: Change) -> list[str]:
    """One configuration: its verdict, and every quantity that differs."""
    lines = [change.configuration.title]
    lines += [f"  {line}" for line in command_lines(command(rules, change.configuration), 96)]
    old, new = change.before, change.after
    if new.refused or old.refused:
        was = f"refused ({old.refused})" if old.refused else old.verdict
        now = f"refused ({new.refused})" if new.refused else new.verdict
        return [*lines, paragraph(f"was {was}, is now {now}", "  "), ""]
    verdict = old.verdict if old.verdict == new.verdict else f"{old.verdict} -> {new.verdict}"
    rows = [_row(m) for m in sorted(change.moves, key=lambda m: not m.component)]
    heads = [("", "before", "after", "difference")] if rows else []
    return [*lines, f"  {verdict}", *columns([*heads, *rows], 2, {1, 2}), ""]


def _row(move: Move) -> tuple[str, str, str, str]:
    before, after = _shown(move.before, move.unit), _shown(move.after, move.unit)
    gap = move.difference
    if gap is None:
        known = "new" if move.before is None else "gone" if move.after is None else ""
        return move.name, before, after, known
    exact = Fraction(gap)
    if move.unit == "byte" and abs(exact) < MIB // 100:  # 0.00 MiB would say nothing
        shown = f"{'+' if exact > 0 else ''}{value_text(gap, 'byte')}"
    else:
        shown = _shown(gap, move.unit, True)
    share = f" ({float(exact / abs(move.before)):+.2%})" if move.before else ""
    return move.name, before, after, f"{shown}{share}"


def _shown(value: Any, unit: str, signed: bool = False) -> str:
    if unit == "byte" and isinstance(value, (int, Fraction)):
        return mib_text(value, signed)
    text = value_text(value)
    return f"+{text}" if signed and value > 0 else text


def _data(found: Comparison) -> dict[str, Any]:
    return {
        "files": [{"file": place, "how": verb} for place, verb in found.files],
        "configurations": [_change(c) for c in found.changes],
        "untried": [{"formula": formula, "case": case} for formula, case in found.untried],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "id": change.configuration.id,
        "title": change.configuration.title,
        "verdict": {"before": change.before.verdict, "after": change.after.verdict},
        "refused": {"before": change.before.refused, "after": change.after.refused},
        "moves": [
            {
                "name": m.name,
                "unit": m.unit,
                "before": plain(m.before),
                "after": plain(m.after),
                "difference": plain(m.difference),
            }
            for m in change.moves
        ],
    }
