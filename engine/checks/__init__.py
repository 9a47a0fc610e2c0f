"""Everything that is checked about rule files, all problems of all files in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ..errors import FitcheckError, Problem, RuleFileError
from ..loading import SPECIAL, Loader, Roots, misnamed, placed, profile_kinds, roots_of
from ..modes import HEAD, modes_of
from ..rules import Rules
from ..yaml_source import Source
from .advice_checks import ADVICE_CHECKS
from .architecture_checks import ARCHITECTURE_CHECKS
from .card_checks import check_cards
from .checkpoint_checks import CHECKPOINT_CHECKS
from .claims import check_claims
from .composition_checks import COMPOSITION_CHECKS, check_given
from .cross_checks import CROSS_CHECKS
from .flag_checks import FLAG_CHECKS
from .formula_checks import FORMULA_CHECKS
from .importer_checks import IMPORTER_CHECKS
from .limits import check_amount
from .mode_checks import MODE_CHECKS
from .plot_checks import PLOT_CHECKS
from .profile_checks import PROFILE_CHECKS
from .shape import check_shape
from .status_checks import STATUS_CHECKS

__all__ = ["check_roots", "checked_rules"]

KINDS = {
    "profiles/statuses": "status",
    "profiles/architectures": "architecture",
    "profiles/blocks": "block",
    "profiles/models": "model",
    "profiles/importers": "importer",
    "gpus": "card",
}
NEED_NAMES = ("check_units", "check_unused", "check_cases", "check_examples")


def check_shapes(loader: Loader) -> list[Problem]:
    """The shape of every file; with overlays that of theirs, as the bundled ones were checked."""
    return [*(shapes_of_mode(loader) if loader.mode else ()), *shared_shapes(loader)]


def shapes_of_mode(loader: Loader) -> list[Problem]:
    """The shape of the files that a mode has to itself."""
    kinds = [*profile_kinds(loader.roots, loader.mode), "statuses"]
    folders = {placed(f"profiles/{k}", loader.mode): k for k in kinds}
    found: list[Problem] = []
    for stem, source, _ in loader.sources(placed("formulas", loader.mode)):
        found += check_shape(source, stem if stem in (*SPECIAL, HEAD) else "formula")
    for folder, kind in folders.items():
        for stem, source, _ in loader.sources(folder):
            found += check_shape(source, "status" if kind == "statuses" else "profile")
            if str(source.data.get("id")) != stem:
                found.append(misnamed(source, stem, source.data.get("id")))
    return found


def shared_shapes(loader: Loader) -> list[Problem]:
    """The shape of the files that training and every mode read."""
    problems: list[Problem] = []
    overlaid = any(overlay for _, overlay in loader.roots)

    def sources(folder: str) -> list[tuple[str, Source]]:
        return [(n, s) for n, s, overlay in loader.sources(folder) if overlay or not overlaid]

    for stem, source in sources("formulas"):
        kind = stem if stem in SPECIAL else "formula"
        problems += check_shape(source, kind)
    kinds = {f"profiles/{kind}": "profile" for kind in profile_kinds(loader.roots)}
    for folder, kind in (kinds | KINDS).items():
        for stem, source in sources(folder):
            problems += check_shape(source, kind)
            if str(source.data.get("id")) != stem:
                problems.append(misnamed(source, stem, source.data.get("id")))
    return problems


def attempted(check: Callable[[], Iterable[Problem]], reported: bool) -> list[Problem]:
    """What a check finds, until it trips over a wrong value that is reported already."""
    found: list[Problem] = []
    try:
        found.extend(check())
    except FitcheckError:
        raise
    except Exception:
        if not reported:
            raise
    return found


def check_meaning(rules: Rules, misshapen: bool = False) -> list[Problem]:
    """What is wrong with rules that could be read: first file by file, then across files."""
    problems: list[Problem] = []
    for formula in rules.formulas.values():
        found: list[Problem] = []
        for check in FORMULA_CHECKS:
            unbound = any(p.code in ("F201", "F210") for p in found)
            if check.__name__ in NEED_NAMES and (unbound or formula.id in rules.broken):
                continue  # these need every name to be bound and every expression to be read
            found += attempted(partial(check, rules, formula), misshapen or bool(found))
        if not found and formula.id not in rules.broken:
            found += attempted(partial(check_claims, rules, formula), misshapen)
        problems += found
    families: tuple[Callable[[Rules], Iterable[Problem]], ...]
    families = (*ARCHITECTURE_CHECKS, *COMPOSITION_CHECKS)
    if rules.mode is not None:
        families = (check_given,)  # what nothing reads in one mode another may read
    for check_files in (
        *FLAG_CHECKS,
        *ADVICE_CHECKS,
        *CROSS_CHECKS,
        *PROFILE_CHECKS,
        *STATUS_CHECKS,
        *families,
        *MODE_CHECKS,
        *PLOT_CHECKS,
        *CHECKPOINT_CHECKS,
        *IMPORTER_CHECKS,
    ):
        problems += attempted(partial(check_files, rules), misshapen or bool(problems))
    return problems


def collected(loader: Loader, misshapen: bool) -> Rules | None:
    """The rules as far as they can be read; None where a wrong shape stops the reading."""
    try:
        return loader.collect()
    except FitcheckError:
        raise
    except Exception:
        if not misshapen:
            raise
        return None


def check_all(
    loader: Loader, known: Sequence[Problem] | None = None
) -> tuple[Rules | None, tuple[Problem, ...]]:
    """
    The rules as far as they can be read, and every problem; `known` are the problems of training,
    where those were looked for before a mode is.
    """
    excess = check_amount(loader.roots)
    if excess:
        return None, excess
    problems = check_shapes(loader) if known is None else [*known, *shapes_of_mode(loader)]
    rules = collected(loader, bool(problems))
    shaped = {p.mark.path for p in problems}
    # a file of the wrong shape is reported once, by its schema
    problems += [
        p for p in loader.problems if p.code not in ("F107", "F108") or p.mark.path not in shaped
    ]
    if rules is not None:
        misshapen = bool(problems)
        problems += check_meaning(rules, misshapen)
        cards = [source for _, source, _ in loader.sources("gpus")]
        problems += attempted(partial(check_cards, cards, rules.units), bool(problems))
    return rules, in_order(problems)


def check_roots(roots: Roots | None = None) -> tuple[Problem, ...]:
    """Every problem of the files under these roots (default: the bundled ones), of all modes."""
    return check_modes(roots if roots is not None else roots_of())[1]


def check_modes(roots: Roots) -> tuple[list[Rules | None], tuple[Problem, ...]]:
    """The rules of training and of each mode as far as they can be read, and every problem."""
    loader = Loader(roots)
    rules, problems = check_all(loader)
    found = [rules]
    for mode in modes_of(roots):
        rules, problems = check_all(loader.in_mode(mode), problems)
        found.append(rules)
    return found, problems


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, by its place."""
    return tuple(sorted(set(problems), key=lambda p: (p.mark, p.code, p.message)))


def checked_rules(roots: Roots, mode: str | None = None) -> Rules:
    """
    The rules under these roots, of training or of a mode; raises `RuleFileError` with every problem
    of every file that it reads.
    """
    rules, problems = check_all(Loader(roots, mode=mode))
    if problems or rules is None:
        raise RuleFileError(problems)
    return rules
