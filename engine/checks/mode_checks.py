"""Checks of a mode file: its lines below the verdict, its table of cards, its subcommand."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem, RuleFileError
from ..modes import commands
from ..rules import Rules
from ..scope import suggest
from .formula_checks import check_sentence

TAKEN = ("estimate", "models", "rules")  # subcommands of the program itself


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


MODE_CHECKS = (check_mode,)
