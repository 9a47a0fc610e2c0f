"""The rules of a run: formulas, flags, profiles, statuses, architectures, and how they connect."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .errors import InputProblem, RuleFileError
from .formula import Case, Formula, Unparsed
from .record import record
from .suggest import suggest
from .template import Hole, Sentence, split

if TYPE_CHECKING:
    from . import expression as ex
    from .algebra import Algebra
    from .architecture import Architecture
    from .cards import Card
    from .evaluation import Thunk
    from .flags import FlagSet
    from .modes import Mode
    from .plot_rules import Drawn
    from .profile import Profile
    from .scope import Scope
    from .units import Units
    from .versions import Version
    from .yaml_problems import Path
    from .yaml_source import Source


@record(identity=True)
class Status:
    """One verdict and when it holds; conditions are text in the scope of `formula`."""

    id: str
    title: str
    exit_code: int
    safe: bool
    style: str
    when: str
    because: tuple[tuple[str, str], ...]  # (condition, sentence)
    formula: Formula


@record(identity=True)
class Compiled:
    """The expressions of one formula as functions."""

    formula: Formula
    cases: tuple[tuple[Case, Thunk | None, Thunk], ...]
    condition: Thunk | None


class Rules:
    """
    Every rule file, read once.

    `roots` are (folder, is an overlay) pairs in order of precedence, the bundled one first;
    `broken` are ids of formula files that could not be read. The rules of a `mode` hold its own
    formulas and the shared ones that they lead to.
    """

    def __init__(
        self,
        roots: Sequence[tuple[str, bool]],
        units: Units,
        flags: FlagSet,
        phases: Mapping[str, str],
        hints: Source | None,
        formulas: Mapping[str, Formula],
        profiles: Mapping[str, Sequence[Profile]],
        statuses: Sequence[Status],
        architectures: Sequence[Architecture],
        lists: Mapping[str, ex.Node],
        broken: frozenset[str] = frozenset(),
    ) -> None:
        self.roots, self.units, self.flags, self.phases = roots, units, flags, phases
        self.hints, self.formulas, self.profiles = hints, formulas, profiles
        self.statuses, self.architectures, self.lists = statuses, architectures, lists
        self.broken = broken
        self.mode: Mode | None = None  # none in training, whose files lie in formulas/ itself
        self.checkpoint: Source | None = None  # what config.json says of stored weights
        self._compiled: dict[str, Compiled] = {}
        self.functions: dict[tuple[str, str], Thunk] = {}  # (file, text) to function
        self.names: dict[tuple[str, str], tuple[str, ...]] = {}  # (file, text) to names read
        self.holes_in_bytes: dict[tuple[str, str], bool] = {}  # (file, hole of a sentence)
        self.found_cards: dict[str, Card] = {}  # by the name that was asked for
        self._sentences: dict[tuple[str, str], Sentence] = {}

    @cached_property
    def blocks(self) -> Mapping[str, Source]:
        """The files of `profiles/blocks/` by id; the loader sets those that it has read."""
        from .loading import Loader

        return Loader(self.roots, cached=True).blocks()

    @cached_property
    def modes(self) -> Mapping[str, Rules]:
        """The rules of every mode in the same folders, by name; raises `RuleFileError`."""
        from .loading import Loader
        from .modes import modes_of

        names = modes_of(self.roots) if self.mode is None else ()
        return {n: Loader(self.roots, lazy=True, cached=True, mode=n).load() for n in names}

    @cached_property
    def plots_source(self) -> Source | None:
        """What is drawn of a run, read when pictures are asked for; raises `RuleFileError`."""
        return self.mode.formula.source if self.mode is not None else self.special("plots")

    @cached_property
    def plots(self) -> tuple[Drawn, ...]:
        """What can be drawn of a run, in order; raises `RuleFileError`."""
        if self.mode is not None:
            return self.mode.plots
        from .plot_rules import read_plots

        return read_plots(self.plots_source.data["plots"]) if self.plots_source else ()

    @cached_property
    def advice(self) -> Source | None:
        """What the advisor sweeps, `formulas/advise.yaml`, read when it is first asked for."""
        return self.special("advise")

    def special(self, stem: str) -> Source | None:
        """A file of formulas/ that is no formula and that an estimate does without."""
        from .data_cache import read_source
        from .loading import files_of

        found = files_of(self.roots, "formulas").get(stem)
        return None if found is None else read_source(found[0], found[1], found[2])

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
            raise InputProblem(
                f"There is no formula `{name}`.{suggest(name, self.formulas)}"
            ) from None

    @cached_property
    def stack(self) -> Mapping[str, Version]:
        """The library versions that facts hang on where nobody gives others."""
        return self.flags.versions(self.flags.resolve({}))

    @cached_property
    def components(self) -> tuple[Formula, ...]:
        """The memory components (files with `live`), in display order."""
        found = [f for f in self.formulas.values() if f.live]
        return tuple(sorted(found, key=lambda f: (f.order, f.id)))

    def per(self, name: str) -> str | None:
        return self.formula(name).per

    def scope(self, formula: Formula) -> Scope:
        """The names of one file."""
        from .scope import Scope

        reads = {r: self.formulas[r].per for r in formula.reads if r in self.formulas}
        reads.update(dict.fromkeys(self.broken.intersection(formula.reads)))
        return Scope(
            formula.symbols, formula.constants, formula.tables, formula.flags, reads, formula.per
        )

    def compile(
        self, formula: Formula, tree: ex.Node, path: Path, algebra: Algebra | None = None
    ) -> Thunk:
        """One expression of a formula file as a function; raises `RuleFileError`."""
        from .algebra import EXACT, compile_tree
        from .scope import NameProblem

        try:
            return compile_tree(tree, algebra or EXACT, self.scope(formula).inside(tree))
        except NameProblem as error:
            source = formula.source
            mark = source.inside(path, error.at)
            problem = source.problem(error.code, error.name, mark, error.message)
            raise RuleFileError([problem]) from None

    def function(self, formula: Formula, text: str, path: Path) -> Thunk:
        """An expression of a formula file as an exact function, made once for each text."""
        key = (formula.source.path, text)
        found = self.functions.get(key)
        if found is None:
            tree = Unparsed(formula.source, path, text).parse()
            found = self.functions[key] = self.compile(formula, tree, path)
        return found

    def later(self, formula: Formula, text: str, path: Path) -> Thunk:
        """`function`, made when it is first called: of several cases only one is taken."""
        key = (formula.source.path, text)
        made = self.functions.get(key)
        if made is not None:
            return made

        def call(run: Any, loop: Any) -> Any:
            return self.function(formula, text, path)(run, loop)

        return call

    def sentence(self, formula: Formula, text: str) -> Sentence:
        """A sentence of a formula file, its holes made functions once; raises `RuleFileError`."""
        key = (formula.source.path, text)
        if key not in self._sentences:
            parts: list[str | Hole] = []
            for part in split(text):
                if isinstance(part, tuple):
                    hole, form = part
                    function = self.function(formula, hole, ("id",))
                    parts.append(Hole(function, self.in_bytes(formula, hole), form))
                else:
                    parts.append(part)
            self._sentences[key] = Sentence(parts)
        return self._sentences[key]

    def in_bytes(self, formula: Formula, hole: str) -> bool:
        """Whether a hole is a number of bytes: a name by its unit, an expression by its parts'."""
        key = (formula.source.path, hole)
        if key not in self.holes_in_bytes:
            self.holes_in_bytes[key] = self._in_bytes(formula, hole)
        return self.holes_in_bytes[key]

    def _in_bytes(self, formula: Formula, hole: str) -> bool:
        unit = self.unit_text(formula)
        if hole.isidentifier():
            return unit(hole) == "byte"
        from . import expression as ex
        from .dimensions import Mismatch, unit_of

        units = self.units
        try:
            found = unit_of(ex.parse(hole), lambda name: units.parse(unit(name) or "1"))
        except (Mismatch, ex.ExpressionError):
            return False  # `rules lint` says what is wrong with it
        return found is not None and found.same(units.parse("byte"))

    def unit_text(self, formula: Formula) -> Callable[[str], str]:
        """The unit of each name of a formula file, as text."""

        def unit(name: str) -> str:
            if name in formula.symbols:
                found = formula.symbols[name].unit
            elif name in formula.constants:
                found = formula.constants[name].unit
            else:
                found = self.formulas[name].unit if name in self.formulas else None
            return found.text if found is not None else ""

        return unit

    def condition(self, text: str, source: Source) -> Thunk:
        """An expression over flags and quantities, as the hints file has it, made once."""
        key = (source.path, text)
        if key not in self.functions:
            self.functions[key] = self.compile_alone(text, source, self.open_scope())
        return self.functions[key]

    def compile_alone(self, text: str, source: Source, scope: Scope) -> Thunk:
        """An expression of a file that is no formula; raises `RuleFileError`."""
        from . import expression as ex
        from .algebra import EXACT, compile_tree
        from .scope import NameProblem

        try:
            tree = ex.parse(text)
            return compile_tree(tree, EXACT, scope.inside(tree))
        except (ex.ExpressionError, NameProblem) as error:
            message = f"`{text}`: {error.message}"
            problem = source.problem(error.code, error.name, source.mark(), message)
            raise RuleFileError([problem]) from None

    def open_scope(self) -> Scope:
        """Every flag and quantity by name."""
        from .scope import Scope

        reads = {f.id: f.per for f in self.formulas.values()}
        return Scope({}, {}, {}, self.flags.flags, reads)

    def over_flags(self, text: str) -> Thunk:
        """A condition over flags alone, such as those of a measurement, made once."""
        key = (self.flags.source.path, text)
        if key not in self.functions:
            self.functions[key] = self.compile_alone(text, self.flags.source, self.flags.scope())
        return self.functions[key]

    def compiled(self, name: str) -> Compiled:
        """The formula's cases as exact functions, made once."""
        if name not in self._compiled:
            formula = self.formula(name)
            cases = tuple(
                (
                    case,
                    self.function(formula, case.when_text, (*case.path, "when"))
                    if case.when_text
                    else None,
                    self.later(formula, case.text, (*case.path, "expr")),
                )
                for case in formula.cases
            )
            search, condition = formula.search, None
            if search is not None:
                condition = self.function(formula, search.text, ("search", "while"))
            self._compiled[name] = Compiled(formula, cases, condition)
        return self._compiled[name]

    def names_of(self, formula: Formula, case: Case) -> Collection[str]:
        """The names that a case reads."""
        key = (formula.source.path, case.text)
        if key not in self.names:
            from . import expression as ex

            self.names[key] = tuple(ex.names(case.expr))
        return self.names[key]

    def compile_formula(self, formula: Formula, algebra: Algebra) -> Compiled:
        """The formula's cases in another algebra."""
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

    def compiled_list(self, name: str) -> Thunk:
        """The count of a declared list, over flags and quantities."""
        from .algebra import EXACT, compile_tree

        tree = self.lists[name]
        return compile_tree(tree, EXACT, self.open_scope().inside(tree))

    def reads_of(self, formula: Formula) -> set[str]:
        """The ids a formula depends on directly, through lists of components and bands too."""
        found = set(formula.reads)
        if any(s.source.startswith("components[]") for s in formula.symbols.values()):
            found |= {f.id for f in self.components}
        if formula.band:
            found.add(formula.band[0])
        for name in self.lists_of(formula):
            found |= {n for n in self.names_of_list(name) if n in self.formulas}
        return found

    def lists_of(self, formula: Formula) -> set[str]:
        """The declared lists a formula runs over."""
        if not self.lists:
            return set()
        from . import expression as ex

        used = {s.list_path for s in formula.symbols.values()} | {formula.per}
        trees = [t for c in formula.cases for t in (c.when, c.expr) if t is not None]
        trees += [formula.search.condition] if formula.search else []
        for tree in trees:
            for node in ex.walk(tree):
                if isinstance(node, ex.Fold):
                    used |= {loop.source for loop in node.loops}
        return {name for name in self.lists if name in used}

    def names_of_list(self, name: str) -> set[str]:
        """The names that the count of a declared list reads."""
        from . import expression as ex

        return set(ex.names(self.lists[name]))

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
        for name in self.lists_of(formula):
            found |= self.names_of_list(name) & set(self.flags.flags)
        return found

    @cached_property
    def affected(self) -> Mapping[str, frozenset[str]]:
        """Flag id to every formula whose value can depend on it."""
        direct: dict[str, list[str]] = {flag: [] for flag in self.flags.flags}
        for formula in self.formulas.values():
            for flag in self.flags_of(formula):
                direct.setdefault(flag, []).append(formula.id)
        return {flag: self._downstream(names) for flag, names in direct.items()}

    @cached_property
    def affected_by_card(self) -> Mapping[str, frozenset[str]]:
        """
        What a card decides, to every formula whose value can depend on it: `card.<field>`, and
        `profiles.<kind>` where a profile of that kind is chosen by the card.
        """
        kinds = {
            f"profiles.{kind}"
            for kind, profiles in self.profiles.items()
            if any(key.partition(".")[0] == "card" for p in profiles for key in p.matches)
        }
        direct: dict[str, list[str]] = {}
        for formula in self.formulas.values():
            for symbol in formula.symbols.values():
                place, _, field = symbol.source.rpartition(".")
                if place == "card":
                    direct.setdefault(f"card.{field}", []).append(formula.id)
                elif place in kinds:
                    direct.setdefault(place, []).append(formula.id)
        return {source: self._downstream(names) for source, names in direct.items()}

    @cached_property
    def affected_by_band(self) -> frozenset[str]:
        """Every formula that an end of the band can change: by a constant, or by rounding."""
        return self._downstream(
            formula.id
            for formula in self.formulas.values()
            if formula.rounded
            or any(len(set(c.band)) > 1 for c in formula.constants.values())
            or any(s.source.startswith("profiles.") for s in formula.symbols.values())
        )

    @cached_property
    def _readers(self) -> Mapping[str, list[str]]:
        """Formula id to those that read it."""
        found: dict[str, list[str]] = {}
        for formula in self.formulas.values():
            for read in self.reads_of(formula):
                found.setdefault(read, []).append(formula.id)
        return found

    def _downstream(self, names: Iterable[str]) -> frozenset[str]:
        """These formulas and all that depend on them."""
        waiting, reached = list(names), set()
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += self._readers.get(name, ())
        return frozenset(reached)
