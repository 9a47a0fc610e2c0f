"""All rule files of a run: the bundled ones, and overlay folders that replace by id or add."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import expression as ex
from .algebra import EXACT, Algebra, Thunk, compile_tree
from .architecture import Architecture
from .errors import FitcheckError, InputProblem, Mark, Problem, RuleFileError
from .flags import FlagSet, read_flags
from .formula import Case, Formula, FormulaReader
from .paths import data_folder
from .profile import Profile, read_profile
from .scope import NameProblem, Scope
from .units import Unit, Units
from .yaml_source import Path, Source, read

SPECIAL = ("flags", "units", "phases", "hints")  # files of formulas/ that are no formula
FOLDERS = ("formulas", "gpus", "profiles")


@dataclass(frozen=True, eq=False)
class Status:
    """One verdict and when it holds; `when` is compiled in the scope of `formula`."""

    id: str
    title: str
    exit_code: int
    safe: bool
    style: str
    when: ex.Node
    because: tuple[tuple[ex.Node, str], ...]
    formula: Formula


@dataclass(frozen=True, eq=False)
class Compiled:
    """The expressions of one formula as functions."""

    formula: Formula
    cases: tuple[tuple[Case, Thunk | None, Thunk], ...]
    condition: Thunk | None


@dataclass(eq=False)
class Rules:
    """
    Every rule file, read once.

    `roots` are (folder, is an overlay) pairs in order of precedence, the bundled one first.
    """

    roots: Sequence[tuple[str, bool]]
    units: Units
    flags: FlagSet
    phases: Mapping[str, str]
    hints: Source | None
    formulas: Mapping[str, Formula]
    profiles: Mapping[str, Sequence[Profile]]
    statuses: Sequence[Status]
    architectures: Sequence[Architecture]
    _compiled: dict[str, Compiled] = field(default_factory=dict, repr=False)

    @property
    def overlays(self) -> tuple[str, ...]:
        """The overlay folders, as given."""
        return tuple(folder for folder, overlay in self.roots if overlay)

    def folders(self, name: str) -> list[tuple[str, bool]]:
        """A data folder such as `gpus` in every root."""
        return [(os.path.join(root, name), overlay) for root, overlay in self.roots]

    def formula(self, name: str) -> Formula:
        """The formula with this id; raises `InputProblem` with the nearest ids."""
        try:
            return self.formulas[name]
        except KeyError:
            from .scope import suggest

            raise InputProblem(
                f"There is no formula `{name}`.{suggest(name, self.formulas)}"
            ) from None

    @cached_property
    def components(self) -> tuple[Formula, ...]:
        """The memory components (files with `live`), in display order."""
        found = [f for f in self.formulas.values() if f.live]
        return tuple(sorted(found, key=lambda f: (f.order, f.id)))

    def per(self, name: str) -> str | None:
        return self.formula(name).per

    def scope(self, formula: Formula) -> Scope:
        """The names of one file."""
        reads = {r: self.formulas[r].per for r in formula.reads if r in self.formulas}
        return Scope(
            formula.symbols, formula.constants, formula.tables, formula.flags, reads, formula.per
        )

    def compile(
        self, formula: Formula, tree: ex.Node, path: Path, algebra: Algebra = EXACT
    ) -> Thunk:
        """One expression of a formula file as a function; raises `RuleFileError`."""
        try:
            return compile_tree(tree, algebra, self.scope(formula).inside(tree))
        except NameProblem as error:
            source = formula.source
            raise RuleFileError(
                [
                    source.problem(
                        error.code, error.name, source.inside(path, error.at), error.message
                    )
                ]
            ) from None

    def compiled(self, name: str) -> Compiled:
        """The formula's cases as exact functions, compiled once."""
        if name not in self._compiled:
            self._compiled[name] = self.compile_formula(self.formula(name), EXACT)
        return self._compiled[name]

    def compile_formula(self, formula: Formula, algebra: Algebra) -> Compiled:
        cases = tuple(
            (
                case,
                None
                if case.when is None
                else self.compile(formula, case.when, (*case.path, "when"), algebra),
                self.compile(formula, case.expr, (*case.path, "expr"), algebra),
            )
            for case in formula.cases
        )
        search = formula.search
        condition = (
            self.compile(formula, search.condition, ("search", "while"), algebra)
            if search
            else None
        )
        return Compiled(formula, cases, condition)

    def reads_of(self, formula: Formula) -> set[str]:
        """The ids a formula depends on directly, through lists of components and bands too."""
        found = set(formula.reads)
        if any(s.source.startswith("components[]") for s in formula.symbols.values()):
            found |= {f.id for f in self.components}
        if formula.band:
            found.add(formula.band[0])
        return found

    def flags_of(self, formula: Formula) -> set[str]:
        """The flags a formula reads directly, through tables and profile keys too."""
        found = set(formula.flags)
        for symbol in formula.symbols.values():
            if symbol.source.startswith("flags."):
                found.add(symbol.field)
            elif symbol.source.startswith("profiles."):
                kind = symbol.source.split(".")[1]
                found |= {k for p in self.profiles.get(kind, ()) for k in p.matches}
        for table in formula.tables.values():
            found.update(table.axes)
        return found

    @cached_property
    def affected(self) -> Mapping[str, frozenset[str]]:
        """Flag id to every formula whose value can depend on it."""
        result: dict[str, frozenset[str]] = {}
        for flag in self.flags.flags:
            reached = {f.id for f in self.formulas.values() if flag in self.flags_of(f)}
            while True:
                more = {
                    f.id for f in self.formulas.values() if self.reads_of(f) & reached
                } - reached
                if not more:
                    break
                reached |= more
            result[flag] = frozenset(reached)
        return result


def bundled_root() -> str:
    """The folder that holds formulas/, gpus/ and profiles/."""
    return os.path.dirname(data_folder("formulas"))


def files_of(roots: Sequence[tuple[str, bool]], folder: str) -> dict[str, tuple[str, str, bool]]:
    """Stem to (path, name in messages, from an overlay); a later root replaces by stem."""
    found: dict[str, tuple[str, str, bool]] = {}
    for root, overlay in roots:
        places = [(os.path.join(root, folder), folder)]
        if overlay and folder == "formulas":
            places.append((root, ""))
        for place, shown in places:
            if not os.path.isdir(place):
                continue
            for name in sorted(os.listdir(place)):
                path = os.path.join(place, name)
                if name.endswith((".yaml", ".yml")) and os.path.isfile(path):
                    said = path if overlay else f"{shown}/{name}"
                    found[name.rsplit(".", 1)[0]] = (path, said, overlay)
    return found


class Loader:
    """Reads the files of all roots and collects every problem before it gives up."""

    def __init__(self, roots: Sequence[tuple[str, bool]]) -> None:
        self.roots = roots
        self.problems: list[Problem] = []

    def sources(self, folder: str) -> Iterator[tuple[str, Source, bool]]:
        for stem, (path, said, overlay) in files_of(self.roots, folder).items():
            try:
                source = read(path, said)
                if not isinstance(source.data, dict):
                    raise RuleFileError(
                        [
                            source.problem(
                                "F101",
                                "no-mapping",
                                source.mark(),
                                "A rule file holds `key: value` lines.",
                            )
                        ]
                    )
            except RuleFileError as error:
                self.problems += error.problems
            else:
                yield stem, source, overlay

    def guarded(self, source: Source, make: Any) -> Any:
        """The result of `make()`, or None after noting what is wrong with the file."""
        try:
            return make()
        except RuleFileError as error:
            self.problems += error.problems
        except KeyError as error:
            self.problems.append(
                source.problem(
                    "F101",
                    "missing-key",
                    source.mark(),
                    f"`{error.args[0]}` is missing in this file.",
                )
            )
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            self.problems.append(
                source.problem(
                    "F101",
                    "bad-shape",
                    source.mark(),
                    f"The file does not have the expected shape ({error}).",
                )
            )
        return None

    def load(self) -> Rules:
        sources = {s: (src, o) for s, src, o in self.sources("formulas")}
        self.stop()
        for name in ("units", "flags", "phases"):
            if name not in sources:
                raise FitcheckError(
                    f"formulas/{name}.yaml is missing; the rules cannot be read without it."
                )
        units = self.guarded(sources["units"][0], lambda: read_units(sources["units"][0]))
        self.stop()
        flags = self.guarded(sources["flags"][0], lambda: read_flags(sources["flags"][0], units))
        formulas: dict[str, Formula] = {}
        for stem, (source, overlay) in sources.items():
            if stem in SPECIAL:
                continue
            formula = self.guarded(
                source, lambda s=source, o=overlay: FormulaReader(s, units, o).read()
            )
            if formula is not None:
                if formula.id != stem:
                    self.problems.append(
                        source.problem(
                            "F103",
                            "name-mismatch",
                            source.mark(("id",)),
                            f"The file is called {stem} and its id is {formula.id}. Rename one of them.",
                        )
                    )
                formulas[formula.id] = formula
        profiles: dict[str, list[Profile]] = {}
        for kind in ("overhead", "reserve"):
            found = [
                self.guarded(s, lambda s=s, o=o, k=kind: read_profile(k, s, units, o))
                for _, s, o in self.sources(f"profiles/{kind}")
            ]
            profiles[kind] = [p for p in found if p is not None]
        statuses = [
            self.guarded(s, lambda s=s, o=o: read_status(s, units, o))
            for _, s, o in self.sources("profiles/statuses")
        ]
        architectures = [
            Architecture(stem, str(s.data.get("status", "draft")), s.data, s, o)
            for stem, s, o in self.sources("profiles/architectures")
        ]
        self.stop()
        hints = sources["hints"][0] if "hints" in sources else None
        return Rules(
            self.roots,
            units,
            flags,
            sources["phases"][0].data["phases"],
            hints,
            formulas,
            profiles,
            [s for s in statuses if s is not None],
            architectures,
        )

    def stop(self) -> None:
        if self.problems:
            raise RuleFileError(self.problems)


def read_units(source: Source) -> Units:
    """Read `units.yaml`."""
    data = source.data
    sizes = {n: (s["factor"], s["dimension"]) for n, s in data["sizes"].items()}
    return Units(frozenset(data["dimensions"]), frozenset(data["labels"]), sizes)


def read_status(source: Source, units: Units, overlay: bool) -> Status:
    """Read one file of `profiles/statuses/`."""
    data = source.data
    reader = FormulaReader(source, units, overlay)
    because = tuple(
        (reader.tree(("because", i, "when"), b["when"]), str(b["says"]))
        for i, b in enumerate(data.get("because", ()))
    )
    shell = FormulaReader(
        Source(
            source.path,
            source.text,
            {k: v for k, v in data.items() if k != "unit"},
            source.marks,
            source.key_marks,
            source.plain,
        ),
        units,
        overlay,
    ).read()
    return Status(
        str(data["id"]),
        str(data["title"]),
        data["exit_code"],
        bool(data["safe"]),
        str(data.get("style", "")),
        reader.tree(("when",), data["when"]),
        because,
        shell,
    )


def load_rules(overlays: Sequence[str] = ()) -> Rules:
    """
    The bundled rules with overlay folders on top, later ones winning.

    Raises
    ------
    InputProblem
        An overlay folder does not exist or holds no rule file.
    RuleFileError
        Rule files are wrong; every problem found is listed.
    """
    roots: list[tuple[str, bool]] = [(bundled_root(), False)]
    for folder in overlays:
        if not os.path.isdir(folder):
            raise InputProblem(f"--rules {folder}: there is no such folder.", flag="rules")
        roots.append((folder, True))
    return Loader(roots).load()


__all__ = ["Compiled", "Mark", "Rules", "Status", "Unit", "load_rules"]
