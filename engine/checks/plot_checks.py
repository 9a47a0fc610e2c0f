"""Checks of pictures: those of a mode file, and those of training in plots.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from ..plot_rules import CURVES, PHASES, STACK, Drawn, Plot
from ..rules import Rules
from ..scope import suggest
from ..yaml_problems import Path
from ..yaml_source import Source
from .formula_checks import check_sentence

OF_KIND = {  # keys that each kind has beside id, title, kind and limit
    CURVES: ("sweep", "scale", "over", "curves"),
    PHASES: ("band", "marks"),
    STACK: ("band", "marks"),
}
NEEDED = {CURVES: ("sweep", "curves")}


def check_plots(rules: Rules) -> Iterator[Problem]:
    """F101, F106, F107, F201, F205, F216, F706: pictures show bytes that are there."""
    source = rules.plots_source
    if source is None:
        return
    seen: set[str] = set()
    bad = False
    for index, entry in enumerate(source.data.get("plots", ())):
        place: Path = ("plots", index)
        if str(entry.get("id")) in seen:
            message = f"There are two pictures `{entry.get('id')}`. Rename or remove one."
            yield source.problem("F706", "name-taken", source.mark((*place, "id")), message)
        seen.add(str(entry.get("id")))
        for problem in keys_of(source, entry, place):
            bad = True
            yield problem
    if bad:
        return  # what has the keys of another kind cannot be read
    for index, plot in enumerate(rules.plots):
        yield from check_quantities(rules, source, plot, ("plots", index))
        if isinstance(plot, Plot):
            yield from check_curves(rules, source, plot, ("plots", index))


def keys_of(source: Source, entry: dict[str, object], place: Path) -> Iterator[Problem]:
    """F101, F107: a picture has the keys of its kind."""
    kind = str(entry.get("kind", CURVES))
    own = OF_KIND.get(kind, ())
    for key in entry:
        others = [k for k, keys in OF_KIND.items() if key in keys]
        if others and key not in own:
            message = f"`{key}` belongs to pictures of the kind {' or '.join(others)}, not {kind}."
            mark = source.key_mark((*place, key))
            yield source.problem("F101", "unknown-key", mark, message)
    for key in NEEDED.get(kind, ()):
        if key not in entry:
            message = f"`{key}` is missing in this picture of {kind}."
            yield source.problem("F107", "missing-key", source.mark(place), message)


def check_quantities(rules: Rules, source: Source, plot: Drawn, place: Path) -> Iterator[Problem]:
    """F201, F205, F216: what a picture names is one number of bytes, or a search."""

    def problem(code: str, name: str, at: Path, message: str) -> Problem:
        return source.problem(code, name, source.mark((*place, *at)), message)

    for name, at in plot.quantities():
        if name not in rules.formulas:
            if name not in rules.broken:
                message = f"`{name}` is drawn here and no file defines it."
                near = suggest(name, rules.formulas)
                yield problem("F201", "unknown-symbol", at, f"{message}{near}")
            continue
        formula = rules.formulas[name]
        if isinstance(plot, Plot) and at == ("limit", "longest"):
            if formula.search is None or formula.search.flag != plot.sweep:
                message = f"`{name}` is no search for the largest {plot.sweep}."
                yield problem("F216", "bad-search", at, message)
        elif formula.unit.text != "byte" or formula.per is not None:
            message = f"`{name}` is not one number of bytes, and pictures show bytes."
            yield problem("F205", "unknown-unit", at, message)


def check_curves(rules: Rules, source: Source, plot: Plot, place: Path) -> Iterator[Problem]:
    """F106, F107, F201, F211: curves run over whole numbers and have names."""

    def problem(code: str, name: str, at: Path, message: str) -> Problem:
        return source.problem(code, name, source.mark((*place, *at)), message)

    where = "this mode" if rules.mode else "training"
    flags: dict[str, Path] = {plot.sweep: ("sweep", "flag"), plot.over: ("over", "flag")}
    for flag, at in flags.items():
        if flag and flag not in rules.flags.flags:
            message = f"`{flag}` is no flag of {where}.{suggest(flag, rules.flags.flags)}"
            yield problem("F201", "unknown-symbol", at, message)
        elif flag and rules.flags.flags[flag].kind != "integer":
            message = f"`{flag}` is no whole number, and an axis counts in whole numbers."
            yield problem("F106", "bad-flag", at, message)
    if plot.limit and not plot.longest:
        message = "A limit of curves needs `longest`, the search for the largest value below it."
        yield problem("F107", "missing-key", ("limit",), message)
    unnamed = [i for i, curve in enumerate(plot.curves) if not curve.label]
    if unnamed and not plot.over:
        message = "A curve needs a `label` where the picture has no `over` that names it."
        yield problem("F107", "missing-key", ("curves", unnamed[0]), message)
    if plot.over and rules.mode is None:
        message = "Only a mode has the symbols of the label of `over`; write one curve here."
        yield problem("F101", "unknown-key", ("over",), message)
    elif plot.over and rules.mode is not None:
        label = (*place, "over", "label")
        yield from check_sentence(rules, rules.mode.formula, label, plot.label)


PLOT_CHECKS = (check_plots,)
