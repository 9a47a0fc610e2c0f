"""`fitcheck rules lint` and `test`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

from fitcheck.cli.output import say as note
from fitcheck.cli.rules.folders import folder_argument, json_option, overlays, roots, rules_option
from fitcheck.cli.rules.layout import columns, counted, say
from fitcheck.engine.checks import check_roots
from fitcheck.engine.errors import InputProblem, Problem, harmless
from fitcheck.engine.formula import Formula
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.loading import Roots, files_of, rule_folders
from fitcheck.engine.rules import Rules
from fitcheck.engine.stray_files import not_read, says
from fitcheck.engine.workshop.examples import Tried, run_examples, without_example
from fitcheck.engine.workshop.opened import Opened, open_rules
from fitcheck.engine.workshop.values import LOGICAL, value_text

only_option = click.option(
    "--only", multiple=True, metavar="ID", help="Only this quantity; may be repeated."
)


@click.command("lint")
@folder_argument
@rules_option
@json_option
def lint_command(folder: str | None, folders: tuple[str, ...], as_json: bool) -> int:
    """Every problem of every rule file, each with its place, the lines, and what to write.

    DIR is a folder with changed or added files, checked on top of the bundled ones.
    """
    where = roots(folders, folder)
    problems = check_roots(where)
    stray = not_read(overlays(folders, folder))
    files = sum(len(files_of(where, name)) for name in rule_folders(where))
    if as_json:
        found = [_problem(p) for p in problems]
        say(json_text("rules-lint", {"files": files, "problems": found, "not_read": stray}))
        return 1 if problems else 0
    for path in stray:
        note("warning", harmless(says(path)))
    if not problems:
        say(f"No problem in {counted(files, 'file')}.")
        return 0
    print_problems(problems, where)
    return 1


def print_problems(problems: Sequence[Problem], where: Roots) -> None:
    """Problems one below the other, and where to read more about them."""
    codes = sorted({p.code for p in problems})
    paths = {p.mark.path for p in problems}
    amount = f"{counted(len(problems), 'problem')} in {counted(len(paths), 'file')}."
    shown = ", ".join(codes)
    say(*(f"{p.render()}\n" for p in problems), f"{amount} More: fitcheck rules explain {shown}")


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "name": problem.name,
        "file": problem.mark.path,
        "line": problem.mark.line,
        "column": problem.mark.column,
        "message": problem.message,
    }


def chosen(opened: Opened, only: Sequence[str]) -> list[Formula]:
    """The formulas a command is about; raises `InputProblem` for an id that is none."""
    for name in only:
        opened.rules.formula(name)
        if name in opened.skipped:
            raise InputProblem(f"`{name}` has problems that come first: `fitcheck rules lint`.")
    return [f for f in opened.sound() if not only or f.id in only]


def note_skipped(opened: Opened) -> None:
    """Say on standard error which formulas could not be evaluated at all."""
    if opened.skipped:
        names = ", ".join(sorted(opened.skipped))
        note("error", f"{names}: not evaluated, `fitcheck rules lint` says why.")


@click.command("test")
@folder_argument
@only_option
@rules_option
@json_option
def test_command(
    folder: str | None, only: tuple[str, ...], folders: tuple[str, ...], as_json: bool
) -> int:
    """Every worked example of the formula files, with what was expected and what came out.

    DIR is a folder with changed or added files, on top of the bundled ones.
    """
    opened = open_rules(roots(folders, folder))
    formulas = chosen(opened, only)
    tried = {f.id: list(run_examples(opened.rules, f)) for f in formulas}
    failed = [t for each in tried.values() for t in each if t.problem]
    without = {f.id: w for f in formulas if (w := without_example(f, tried[f.id]))}
    status = 1 if failed or (opened.skipped and not only) else 0
    if as_json:
        data = {
            "examples": [_tried(t) for each in tried.values() for t in each],
            "cases_without_example": without,
            "skipped": sorted(opened.skipped),
        }
        say(json_text("rules-test", data))
        return status
    lines: list[str] = []
    for name, each in tried.items():
        lines += _block(opened.rules, name, each)
    lines += [f"{name}: no example of case {', '.join(cases)}" for name, cases in without.items()]
    total = counted(sum(map(len, tried.values())), "example")
    verdict = f"{len(failed)} wrong" if failed else "all as expected"
    say(*lines, f"{total}, {verdict}.")
    if not only:
        note_skipped(opened)
    return status


def _block(rules: Rules, name: str, tried: Sequence[Tried]) -> list[str]:
    """The examples of one formula; what is wrong with one comes with its place."""
    if not tried:
        return []
    formula = rules.formula(name)
    unit = "" if formula.unit.text in LOGICAL else f", in {formula.unit.text}"
    rows = [("", "expected", "got", "")]
    for one in tried:
        end = f"{one.problem}  [{one.place}]" if one.problem else f"[case {one.case}]"
        sign = "WRONG" if one.problem else "ok"
        rows.append((sign, value_text(one.expected), value_text(one.got), f"{one.name}  {end}"))
    return [f"{name}: {formula.title}{unit}", *columns(rows, 2, {1, 2}), ""]


def _tried(one: Tried) -> dict[str, Any]:
    return {
        "formula": one.formula,
        "place": one.place,
        "name": one.name,
        "case": one.case,
        "unit": one.unit,
        "expected": plain(one.expected),
        "got": plain(one.got),
        "problem": one.problem,
    }


def plain(value: Any) -> Any:
    """A value as JSON has it; a fraction becomes a decimal."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return list(value) if isinstance(value, tuple) else value
