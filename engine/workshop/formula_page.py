"""The page of a component or quantity: its formula in every case, and everything behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .. import expression as ex
from ..formula import Case, Constant, Formula, Symbol, Table
from ..printer import LATEX, TEXT, Printer
from .book import DIRECTIONS, Book, evidence_table, graded
from .examples import Tried
from .index import readers
from .markdown import code, link, page, plain, section, sentence, table
from .prove import REFUTED, Proof
from .values import value_text

WIDE = 100  # characters of a formula that fit into one line of text


def formula_page(
    book: Book, formula: Formula, proofs: Sequence[Proof], tried: Sequence[Tried]
) -> str:
    """The page as Markdown, with GitHub's math."""
    here = book.quantity(formula.id)
    lines = [
        f"# {plain(formula.title)}",
        "",
        sentence(formula.counts),
        "",
        *facts(book, here, formula),
        *section("Not counted here", excluded(book, here, formula)),
        *section("Formula", list(formulas(book, here, formula))),
        *section("Names in it", names(book, here, formula)),
        *section("Where it ends", limits(formula)),
        *section("What it claims", claims(formula, proofs)),
        *section("Worked examples", examples(formula, tried)),
        *section("Evidence", evidence_table(here, [*formula.evidence.values()])),
        *section("Neighbours", neighbours(book, here, formula)),
    ]
    return page(lines)


def facts(book: Book, here: str, formula: Formula) -> list[str]:
    """What it is, in two columns."""
    kind = "memory component, a row of the table" if formula.live else "quantity"
    unit = formula.unit.text
    rounded = ", rounded to whole bytes" if formula.rounded else ""
    keys = [f"{code(key)} ({plain(shown)})" for key, shown in formula.json.items()]
    rows = [
        ("id", f"{code(formula.id)}, a {kind}"),
        ("unit", {"1": "a plain number", "truth": "true or false"}.get(unit, unit) + rounded),
        ("one value for each of", code(formula.per or "")),
        ("live in", ", ".join(formula.live)),
        ("JSON", ", ".join(keys)),
        ("status", f"{formula.status}: no run that uses it is called safe"),
        ("file", book.file(here, formula.source.mark(), formula.overlay)),
        ("with your numbers", code(book.command(formula.id))),
    ]
    kept = [r for r in rows if r[1] and (r[0] != "status" or formula.status != "stable")]
    return table(("", ""), kept)


def excluded(book: Book, here: str, formula: Formula) -> list[str]:
    rows = [
        f"- {sentence(says)}: see {book.named(here, n)}" for n, says in formula.excludes.items()
    ]
    return [*rows, ""] if rows else []


def formulas(book: Book, here: str, formula: Formula) -> Iterator[str]:
    """Every case with its condition, reason, formula as math and as text, and its support."""
    if formula.band:
        of, end = formula.band
        at = ("low", "", "high")[end]
        yield from (f"{book.named(here, of)} with every banded constant at its {at} end.", "")
    if formula.search:
        option = book.rules.flags.spelled(formula.search.flag)
        yield from (f"The largest {code(option)} for which {code(formula.search.text)}.", "")
    for case in formula.cases:
        yield from one_case(book, here, formula, case)


def one_case(book: Book, here: str, formula: Formula, case: Case) -> Iterator[str]:
    when = f"when {code(case.when_text)}" if case.when_text else "always"
    place = book.file(here, case.mark, formula.overlay, case.mark.line)
    yield from (f"### {plain(case.id)}", "", f"**{when}**: {sentence(case.says)}. ({place})", "")
    yield from ("```math", f"{math_name(formula.id)} = {math(case.expr)}", "```", "")
    yield from ("```text", *wrapped(f"{formula.id} = {Printer(TEXT).show(case.expr)}"), "```", "")
    proofs = [formula.evidence[e] for e in case.evidence if e in formula.evidence]
    if proofs:
        yield f"Rests on {', '.join(f'{plain(e.id)} [{graded(e)}](#evidence)' for e in proofs)}."
    else:
        yield "Rests on nothing but this file: assumed."
    yield ""


def math_name(name: str) -> str:
    """`A_logits` with its subscript, a longer name as upright words."""
    first, _, rest = name.partition("_")
    if len(first) == 1:
        return LATEX.name(name)
    return rf"\mathrm{{{' '.join([first, *rest.split('_')]).strip()}}}".replace(" ", r"\ ")


def math(tree: ex.Node) -> str:
    """An expression in GitHub's math; words and texts are set as such."""

    def leaf(node: ex.Name | ex.Item | ex.Call, loop: Mapping[str, Any]) -> str:
        name = math_name("" if isinstance(node, ex.Call) else node.id)
        return rf"{name}^{{({node.var})}}" if isinstance(node, ex.Item) else name

    shown = Printer(LATEX, leaf).show(tree)
    shown = re.sub(r'"([^"]*)"', lambda m: rf"\texttt{{{m[1]}}}", shown)
    shown = re.sub(r"(?<![\\\w{])(and|or|not|if|else)(?= )", r"\\ \\text{\1}\\", shown)
    return re.sub(r"\\mathrm\{([^{}]*)\}", lambda m: re.sub(r"(?<!\\) ", r"\\ ", m[0]), shown)


def wrapped(text: str) -> list[str]:
    """A formula in lines that need no scrolling, broken before operators."""
    lines = [""]
    for part in re.split(r"(?= [-+*/] | for | if )", text):
        if lines[-1] and len(lines[-1]) + len(part) > WIDE:
            lines.append("   ")
        lines[-1] += part
    return lines


def names(book: Book, here: str, formula: Formula) -> list[str]:
    """Symbols, constants, quantities and flags in one table, then the cells of tables."""
    support = formula.evidence

    def rests(ids: Sequence[str]) -> str:
        grades = dict.fromkeys(graded(support[i]) for i in ids if i in support)
        return ", ".join(grades) or "assumed"

    rows = [
        (code(n), domain(s), given_by(here, s), sentence(s.meaning))
        for n, s in formula.symbols.items()
    ]
    rows += [
        (code(n), amount(c), rests(c.evidence), sentence(c.meaning))
        for n, c in formula.constants.items()
    ]
    rows += [
        (code(n), t.unit.text, "table below", sentence(t.meaning))
        for n, t in formula.tables.items()
    ]
    for name in formula.reads:
        read = book.rules.formulas.get(name)
        if read is not None:
            page_of = link(here, book.quantity(name), "its page")
            rows.append((code(name), read.unit.text, page_of, sentence(read.title)))
    for name in formula.flags:
        flag = book.rules.flags.flags.get(name)
        if flag is not None:
            values = ", ".join(flag.values) or flag.kind
            rows.append((code(name), plain(values), f"flag {code(flag.option)}", plain(flag.help)))
    lines = table(("name", "unit or value", "where from", "meaning"), rows)
    for each in formula.tables.values():
        lines += cells(each, rests(each.evidence))
    return lines


def given_by(here: str, symbol: Symbol) -> str:
    """Where the value of a symbol comes from, with a link to what gives it."""
    record = symbol.source.partition(".")[0]
    places = {"profiles": "#profiles", "card": "#cards", "model": "#architectures"}
    record = "model" if record == "layer_groups[]" else record
    if record in places:
        return f"given: {link(here, f'README.md{places[record]}', code(symbol.source))}"
    return f"given: {code(symbol.source)}"


def domain(symbol: Symbol) -> str:
    if symbol.unit is None:
        return plain(" / ".join(value_text(v) for v in symbol.oneof)) or "text"
    words = [symbol.unit.text] if symbol.unit.text != "1" else []
    words += ["whole"] if symbol.integer else []
    words += [f"at least {value_text(symbol.low)}"] if symbol.low is not None else []
    return ", ".join(words)


def amount(constant: Constant) -> str:
    low, value, high = constant.band
    unit = constant.unit.text
    band = f", {value_text(low)} to {value_text(high)}" if low != high else ""
    return f"{plain(value_text(value, unit))}{band}"


def cells(found: Table, rests: str) -> list[str]:
    rows = [(*map(plain, map(value_text, key)), value_text(v)) for key, v in found.cells.items()]
    heads = [code(axis) for axis in found.axes]
    last = plain(found.unit.text)
    head = f"{code(found.name)}, {sentence(found.meaning)} ({rests}):"
    return [head, "", *table((*heads, last), rows, right=len(heads))]


def limits(formula: Formula) -> list[str]:
    rows = [
        (
            limit.level,
            DIRECTIONS[limit.direction],
            code(limit.when_text) or "always",
            sentence(limit.says),
        )
        for limit in formula.limits
    ]
    return table(("level", "direction", "when", "what it says"), rows)


def claims(formula: Formula, proofs: Sequence[Proof]) -> list[str]:
    """Each claim with the cases in which it is proved, or only sampled."""
    found: dict[str, dict[str, list[str]]] = {}
    for proof in proofs:
        where = proof.how if proof.verdict == REFUTED else proof.case
        found.setdefault(proof.claim, {}).setdefault(proof.verdict, []).append(where)
    rows = []
    for claim, verdicts in found.items():
        words = []
        for verdict, places in verdicts.items():
            if verdict == REFUTED:
                words.append(f"{verdict}: {'; '.join(places)}")
            else:
                words.append(verdict if len(verdicts) == 1 else f"{verdict} in {', '.join(places)}")
        rows.append((plain(claim), plain("; ".join(words))))
    for name, why in formula.claims.get("no_direction", {}).items():
        rows.append((f"no direction in {code(name)}", sentence(why)))
    return table(("claim", "how far it holds"), rows)


def examples(formula: Formula, tried: Sequence[Tried]) -> list[str]:
    """Every example with its values; the results are recomputed when the page is written."""
    rows = [
        (
            plain(one.name),
            code(given(example.given)),
            plain(value_text(one.got, formula.unit.text)) + (" WRONG" if one.problem else ""),
            plain(one.case),
        )
        for example, one in zip(formula.examples, tried, strict=True)
    ]
    return table(("example", "given", "result", "case"), rows)


def given(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {nested(value)}" for name, value in values.items())


def nested(value: Any) -> str:
    """A value, or a list of the language as JSON has it."""
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, default=_number, ensure_ascii=False)
    return value_text(value)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else str(value)


def neighbours(book: Book, here: str, formula: Formula) -> list[str]:
    """What it reads and what reads it."""
    reads = sorted(n for n in book.rules.reads_of(formula) if n in book.rules.formulas)
    rows = [
        (title, ", ".join(book.named(here, n) for n in found))
        for title, found in (
            ("reads", reads),
            ("is read by", sorted(readers(book.rules, formula.id))),
        )
        if found
    ]
    picture = link(here, book.graph(formula.id), "the whole graph")
    return [*table(("", ""), rows), f"In one picture: {picture}.", ""]
