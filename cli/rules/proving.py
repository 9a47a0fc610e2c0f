"""`fitcheck rules prove`: what the formula files claim, and how far it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from fitcheck.cli.rules.checking import chosen, note_skipped, only_option
from fitcheck.cli.rules.folders import folder_argument, json_option, roots, rules_option
from fitcheck.cli.rules.layout import Progress, columns, counted, paragraph, say
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.monotone import TRIES
from fitcheck.engine.record import as_dict
from fitcheck.engine.workshop.opened import open_rules
from fitcheck.engine.workshop.prove import PROVED, REFUTED, SAMPLED, Proof, prove

MEANING = (
    f"Proved: by the sign of derivatives, for every value that the file allows and lists of two "
    f"items. Sampled: no counter-example around the examples and in {TRIES} random ones."
)


@click.command("prove")
@folder_argument
@only_option
@rules_option
@json_option
def prove_command(
    folder: str | None, only: tuple[str, ...], folders: tuple[str, ...], as_json: bool
) -> int:
    """Every claim of the formula files: proved where possible, otherwise tried on a sample.

    max, min and if are split into branches. A refuted claim comes with a counter-example.
    DIR is a folder with changed or added files, on top of the bundled ones.
    """
    opened = open_rules(roots(folders, folder))
    formulas = chosen(opened, only)
    found: dict[str, list[Proof]] = {}
    with Progress() as progress:
        for position, formula in enumerate(formulas, 1):
            progress(f"proving {position} of {len(formulas)}: {formula.id}")
            found[formula.id] = list(prove(opened.rules, formula))
    proofs = [proof for each in found.values() for proof in each]
    status = 1 if any(p.verdict == REFUTED for p in proofs) or (opened.skipped and not only) else 0
    if as_json:
        data = {"claims": [as_dict(p) for p in proofs], "skipped": sorted(opened.skipped)}
        say(json_text("rules-prove", data))
        return status
    lines: list[str] = []
    for name, each in found.items():
        if each:
            lines += [name, *block(each), ""]
    amounts = Counter(p.verdict for p in proofs)
    numbers = ", ".join(f"{amounts[v]} {v}" for v in (PROVED, SAMPLED, REFUTED))
    say(*lines, f"{counted(len(proofs), 'claim')} of cases: {numbers}.", paragraph(MEANING))
    if not only:
        note_skipped(opened)
    return status


def block(proofs: Sequence[Proof]) -> list[str]:
    """The claims of one formula by verdict; a refuted one with its counter-example and place."""
    everywhere = Counter(p.claim for p in proofs)
    rows = []
    for verdict in (PROVED, SAMPLED):
        claims: dict[str, list[str]] = {}
        for proof in proofs:
            if proof.verdict == verdict:
                claims.setdefault(proof.claim, []).append(proof.case)
        words = [
            claim if len(cases) == everywhere[claim] else f"{claim} (case {', '.join(cases)})"
            for claim, cases in claims.items()
        ]
        rows += [(verdict, text) for text in merged(words)]
    for proof in (p for p in proofs if p.verdict == REFUTED):
        case = f" in case {proof.case}" if proof.case else ""
        rows.append((REFUTED.upper(), f"{proof.claim}{case}: {proof.how}  [{proof.place}]"))
    return columns(rows, 2)


def merged(claims: Sequence[str]) -> list[str]:
    """`rises with a, b` for `rises with a` and `rises with b`."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        verb, with_, name = claim.partition(" with ")
        found.setdefault(verb + with_, []).append(name)
    return [verb + ", ".join(names) for verb, names in found.items()]
