"""`fitcheck rules show ID`: one rule file, in the order in which a person asks about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from fitcheck.cli.rules.folders import complete_id, load, rules_option
from fitcheck.cli.rules.layout import columns, paragraph, say
from fitcheck.engine.checks.composition_checks import ancestors
from fitcheck.engine.formula import Constant, Evidence, Formula, Table
from fitcheck.engine.profile import Profile
from fitcheck.engine.rules import Rules
from fitcheck.engine.workshop.block_page import blocks_of, users
from fitcheck.engine.workshop.everything import everything
from fitcheck.engine.workshop.index import Entry, find, readers
from fitcheck.engine.workshop.values import value_text


@click.command("show")
@click.argument("id", shell_complete=complete_id)
@click.option("--file", "raw", is_flag=True, help="Print the file itself, as it stands.")
@rules_option
def show_command(id: str, raw: bool, folders: tuple[str, ...]) -> int:
    """One rule file: what it counts, its cases, symbols, numbers, evidence, and who reads it.

    ID is the id of a formula, profile, status, architecture, block or card.
    """
    rules = load(folders)
    entry = find(rules, id)
    text = _text(entry)
    if raw:
        say(text.rstrip("\n"))
        return 0
    draft = "" if entry.status == "stable" else f", {entry.status}"
    say(
        f"{entry.id}: {entry.title}  ({entry.kind}{draft})",
        os.path.realpath(entry.path),
        "",
        *_body(rules, entry, text),
    )
    return 0


def _text(entry: Entry) -> str:
    with open(entry.path, encoding="utf-8-sig") as handle:
        return handle.read()


def _body(rules: Rules, entry: Entry, text: str) -> Iterator[str]:
    if entry.kind in ("component", "quantity"):
        whole = everything(rules)
        yield from formula_lines(whole, whole.formula(entry.id))
        return
    if entry.kind == "profile":
        kind, home = entry.folder.split("/")[1], rules.modes[entry.mode] if entry.mode else rules
        yield from profile_lines(next(p for p in home.profiles[kind] if p.id == entry.id))
        return
    yield from text.rstrip("\n").split("\n")
    if entry.kind in ("architecture", "block"):
        yield from family_lines(rules, entry)


def family_lines(rules: Rules, entry: Entry) -> Iterator[str]:
    """What an architecture file takes from others, and which files use one or a block."""
    files = {a.id: a for a in rules.architectures}
    if entry.kind == "block":
        yield from _section("Is used by", [(a.id, _title(a.own)) for a in users(rules, entry.id)])
        return
    found = files[entry.id]
    rows = [(name, _title(files[name].own)) for name in ancestors(files, found)]
    yield from _section("Extends", rows)
    names = [name for name in blocks_of(found.own) if name in rules.blocks]
    yield from _section("Blocks", [(name, _title(rules.blocks[name].data)) for name in names])
    rows = [(a.id, _title(a.own)) for a in files.values() if a.own.get("extends") == found.id]
    yield from _section("Is extended by", rows)


def _title(data: Mapping[str, Any]) -> str:
    return str(data.get("title", ""))


def formula_lines(rules: Rules, formula: Formula) -> Iterator[str]:
    """A formula file, section by section."""
    yield paragraph(formula.counts)
    facts = [f"in {formula.unit.text}"]
    if formula.per:
        facts.append(f"one value for each of {formula.per}")
    if formula.live:
        facts.append(f"live in {', '.join(formula.live)}")
    yield paragraph(f"({'; '.join(facts)})")
    yield from _section("Not counted here", [(n, says) for n, says in formula.excludes.items()])
    if formula.search:
        yield from ("", f"The largest {formula.search.flag} while {formula.search.text}")
    if formula.band:
        end = ("low", "", "high")[formula.band[1]]
        yield from ("", f"{formula.band[0]} with every banded constant at its {end} end")
    if formula.cases:
        yield from ("", "Cases")
    for case in formula.cases:
        when = f"when {' '.join(case.when_text.split())}" if case.when_text else "always"
        proofs = f" [{', '.join(case.evidence)}]" if case.evidence else ""
        yield f"  {case.id}  (line {case.mark.line})"
        yield from columns([(when,), (f"= {' '.join(case.text.split())}",)], 6)
        yield from columns([(f"{' '.join(case.says.split())}{proofs}",)], 6)
    yield from _section("Symbols", [_symbol(rules, formula, n) for n in formula.symbols])
    yield from _section("Constants", [_constant(c) for c in formula.constants.values()])
    for table in formula.tables.values():
        yield from _table(table)
    reads = [(n, rules.formulas[n].title) for n in formula.reads if n in rules.formulas]
    yield from _section("Reads", reads)
    yield from _section(
        "Is read by", [(n, rules.formulas[n].title) for n in readers(rules, formula.id)]
    )
    if formula.flags:
        yield from _section(
            "Flags", [(rules.flags.spelled(f), rules.flags.flags[f].help) for f in formula.flags]
        )
    yield from _section("Claims", _claims(formula.claims))
    limits = [(f"{x.id} ({x.level}, {x.direction})", x.says) for x in formula.limits]
    yield from _section("Limits", limits)
    yield from _section("Evidence", [_proof(e) for e in formula.evidence.values()])
    yield from _section(
        "Examples",
        [(e.name, f"= {value_text(e.expect, formula.unit.text)}") for e in formula.examples],
    )


def profile_lines(profile: Profile) -> Iterator[str]:
    """A profile: the runs it is for, what it gives, and why."""
    matches = [(key, value_text(wanted)) for key, wanted in profile.matches.items()]
    yield "Matches" if matches else "Matches any run that no other file fits better."
    yield from columns(matches, 2)
    values = [
        (n, v) if isinstance(v, str) else (n, _constant(v)[1]) for n, v in profile.values.items()
    ]
    yield from _section("Values", values)
    yield from _section("Evidence", [_proof(e) for e in profile.evidence.values()])


def _section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from ("", title, *columns(rows, 2))


def _symbol(rules: Rules, formula: Formula, name: str) -> tuple[str, str, str, str]:
    symbol = formula.symbols[name]
    unit = symbol.unit.text if symbol.unit else value_text(symbol.oneof)
    low = f" >= {value_text(symbol.low)}" if symbol.low is not None else ""
    return name, f"{unit}{low}", symbol.source, symbol.meaning


def _constant(constant: Constant) -> tuple[str, str, str]:
    low, value, high = constant.band
    unit = constant.unit.text
    text = value_text(value, unit)
    if low != high:
        text += f", from {value_text(low, unit)} to {value_text(high, unit)}"
    proofs = f" [{', '.join(constant.evidence)}]" if constant.evidence else ""
    return constant.name, f"{text}", f"{constant.meaning}{proofs}"


def _table(table: Table) -> Iterator[str]:
    yield from ("", f"Table {table.name}: {table.meaning}, in {table.unit.text}")
    rows = [
        (*map(value_text, key), f"{value_text(value)}{' (each)' if not key else ''}")
        for key, value in table.cells.items()
    ]
    yield from columns([(*table.axes, ""), *rows], 2)


def _claims(claims: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [("never negative", "")] if claims.get("nonnegative") else []
    rows += [
        (key.replace("_", " "), ", ".join(claims[key]))
        for key in ("rises_with", "falls_with")
        if claims.get(key)
    ]
    rows += [(f"no direction in {n}", why) for n, why in claims.get("no_direction", {}).items()]
    return rows


def _proof(proof: Evidence) -> tuple[str, str, str]:
    rows = f", {proof.rows} rows" if proof.rows else ""
    return proof.id, f"{proof.kind}{rows}", f"{' '.join(proof.says.split())} ({proof.where})"
