"""The pages of profiles and statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..formula import Constant, Evidence
from ..profile import Profile
from ..rules import Rules, Status
from .book import Book, evidence_table, graded
from .formula_page import amount, nested
from .markdown import code, page, plain, section, sentence, table


def profile_page(book: Book, profile: Profile) -> str:
    """A best-match profile: the runs it is for, what it gives, who reads it, and why."""
    here = f"{book.folder(profile.kind)}/{profile.id}.md"
    wanted = [(code(k), code(nested(v))) for k, v in profile.matches.items()]
    values = [value(n, v, profile.evidence) for n, v in profile.values.items()]
    source = f"profiles.{profile.kind}."
    used = [
        f.id
        for f in book.rules.formulas.values()
        if any(s.source.startswith(source) for s in f.symbols.values())
    ]
    lines = [
        f"# {plain(profile.title)}",
        "",
        f"{code(here.removeprefix('profiles/').removesuffix('.md'))}, {status(profile.status)}in "
        f"{book.file(here, profile.mark, profile.overlay)}. Of the profiles of a kind that match "
        f"a run, the one whose keys include those of the others is taken{why(book, profile)}.",
        "",
        *section("For which runs", table(("key", "has to be"), wanted) or fallback()),
        *section("What it gives", table(("name", "value", "rests on"), values)),
        *section("How it was fitted", fitted(profile.source.data.get("fit", {}))),
        *section("Evidence", evidence_table(here, [*profile.evidence.values()])),
        *section("Read by", [f"- {book.named(here, name)}" for name in used]),
    ]
    return page(lines)


def why(book: Book, profile: Profile) -> str:
    """The command that says which profile is taken; it knows the flags of training alone."""
    if book.rules.mode is not None:
        return ""
    return f"; {code(f'fitcheck rules why {profile.kind} MODEL ...')} says which one and why"


def status(word: str) -> str:
    return "" if word == "stable" else f"a {plain(word)} (no run that uses it is called safe), "


def fallback() -> list[str]:
    return ["Any run that no other profile of this kind matches.", ""]


def value(
    name: str, found: str | Constant, support: Mapping[str, Evidence]
) -> tuple[str, str, str]:
    if isinstance(found, str):
        return code(name), code(found), ""
    rests = [f"{plain(e)}: {graded(support[e])}" for e in found.evidence if e in support]
    return code(name), amount(found), ", ".join(rests) or "assumed"


def fitted(fit: Mapping[str, Any]) -> list[str]:
    rows = []
    for key, found in fit.items():
        inner = found.items() if isinstance(found, Mapping) else ()
        words = ", ".join(f"{n} {nested(v)}" for n, v in inner) or nested(found)
        rows.append((plain(key.replace("_", " ")), plain(words)))
    return table(("", ""), rows)


def status_page(book: Book, found: Status) -> str:
    """One verdict: when it holds, what it does to the exit status, and what is said."""
    here, formula = f"{book.folder('statuses')}/{found.id}.md", found.formula
    because = [(code(when), sentence(says)) for when, says in found.because]
    given = [
        (code(n), f"given: {code(s.source)}", sentence(s.meaning))
        for n, s in formula.symbols.items()
    ]
    reads = [
        (code(n), book.named(here, n), sentence(book.rules.formulas[n].title))
        for n in formula.reads
        if n in book.rules.formulas
    ]
    condition = " ".join(str(formula.source.data["when"]).split())
    lines = [
        f"# {plain(found.title)}",
        "",
        f"The verdict {code(found.id)}, exit status {found.exit_code}, from "
        f"{book.file(here, formula.source.mark(), formula.overlay)}. For every run exactly one "
        "status holds.",
        "",
        *section("When it holds", ["```text", *folded(condition), "```", ""]),
        *section("What is said", table(("when", "sentence"), because)),
        *section("Names in it", table(("name", "where from", "meaning"), [*reads, *given])),
    ]
    return page(lines)


def folded(condition: str) -> list[str]:
    """A condition in lines, broken before `and` and `or`, indented by the brackets around them."""
    lines, depth = [""], 0
    for word in condition.split(" "):
        if word in ("and", "or"):
            lines.append("  " * (1 + depth) + word)
        else:
            lines[-1] += f"{' ' if lines[-1] else ''}{word}"
        depth += word.count("(") - word.count(")")
    return lines


def readers_of(rules: Rules, sources: tuple[str, ...]) -> list[str]:
    """The quantities with a symbol from one of these sources."""
    return [
        f.id
        for f in rules.formulas.values()
        if any(s.source.startswith(sources) for s in f.symbols.values())
    ]
