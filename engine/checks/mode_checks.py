"""Checks of a mode file: its lines below the verdict, tables, and its subcommand."""

from __future__ import annotations

from collections.abc import Iterator

from ..beside import Beside
from ..checkpoint import facts_of
from ..errors import Problem, RuleFileError
from ..modes import ModeTable, commands
from ..rules import Rules
from ..scope import suggest
from ..yaml_problems import Path
from .formula_checks import check_sentence

TAKEN = ("advise", "estimate", "models", "rules")  # subcommands of the program itself


def check_mode(rules: Rules) -> Iterator[Problem]:
    """F103, F201, F211, F706: what a mode file says of itself holds."""
    mode = rules.mode
    if mode is None:
        return
    formula = mode.formula
    source = formula.source
    folder = source.path.replace("\\", "/").split("/")[-2]
    if mode.id != folder:
        message = f"The folder is called {folder} and the id of its mode is {mode.id}. Rename one."
        yield source.problem("F103", "name-mismatch", source.mark(("id",)), message)
    known = commands(rules.roots)
    if mode.command in TAKEN or known.get(mode.command, mode.id) != mode.id:
        message = f"`{mode.command}` is a subcommand already; use another one."
        yield source.problem("F706", "name-taken", source.mark(("command",)), message)
    for read in (*formula.reads, *mode.fit):
        if read not in rules.formulas and read not in rules.broken:
            place = ("reads",) if read in formula.reads else ("fit",)
            message = f"`{read}` is read here and no file defines it."
            near = suggest(read, rules.formulas)
            yield source.problem("F201", "unknown-symbol", source.mark(place), f"{message}{near}")
            return
    for name in mode.fit:
        if not rules.formulas[name].search:
            message = f"`{name}` is no search, and a card holds the largest value of one."
            yield source.problem("F216", "bad-search", source.mark(("fit",)), message)
    for index, fact in enumerate(mode.facts):
        try:
            rules.function(formula, fact.when, ("facts", index, "when"))
        except RuleFileError as error:
            yield from error.problems
        yield from check_sentence(rules, formula, ("facts", index, "says"), fact.says)
    if mode.beside is not None:
        yield from check_beside(rules, mode.beside)
    for index, table in enumerate(mode.tables):
        yield from check_table(rules, table, ("tables", index))


def check_beside(rules: Rules, beside: Beside) -> Iterator[Problem]:
    """F201: the flag, the quantities and the facts of a second model exist."""
    assert rules.mode is not None
    source, known = rules.mode.formula.source, facts_of(rules.checkpoint)
    flags, formulas = tuple(rules.flags.flags), tuple(rules.formulas)
    places = [("flag", beside.flag, flags)]
    places += [("facts", quantity, formulas) for quantity in beside.facts.values()]
    for key, name, there in places:
        if name not in there and name not in rules.broken:
            message = f"`{name}` is not known here.{suggest(name, there)}"
            yield source.problem("F201", "unknown-symbol", source.mark(("beside", key)), message)
    for fact in beside.facts:
        if fact not in known:
            message = f"`{fact}` is no fact of the checkpoint file.{suggest(fact, known)}"
            mark = source.mark(("beside", "facts", fact))
            yield source.problem("F201", "unknown-symbol", mark, message)


def check_table(rules: Rules, table: ModeTable, place: Path) -> Iterator[Problem]:
    """F201, F214: a table shows quantities that have a value for each item of its list."""
    assert rules.mode is not None
    source = rules.mode.formula.source
    try:
        rules.function(rules.mode.formula, table.when, (*place, "when"))
    except RuleFileError as error:
        yield from error.problems
    for head, name in table.columns.items():
        at = source.mark((*place, "columns", head))
        if name not in rules.formulas:
            if name not in rules.broken:
                near = suggest(name, rules.formulas)
                message = f"`{name}` is shown here and no file defines it.{near}"
                yield source.problem("F201", "unknown-symbol", at, message)
        elif rules.formulas[name].per != table.per:
            message = f"`{name}` has no value for each item of {table.per}."
            yield source.problem("F214", "unknown-list", at, message)


MODE_CHECKS = (check_mode,)
