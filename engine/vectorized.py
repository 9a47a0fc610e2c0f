"""Many configurations at once: the formulas over NumPy arrays.

Any flag, card figure or model dimension may be an array. Arrays broadcast, so the three axes of a
grid can stay three short arrays. Results are float64 and agree with the exact evaluator (`run.py`)
to about 1e-15; a configuration that it refuses is refused here with the same message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from . import expression as ex
from .algebra import NO_LOOP, EvaluationError, Thunk, compile_tree
from .arrays import NAN, PRESENT, Coded, both, coded, lookup, negate, possible, select, settled
from .closed_form import comparison
from .columns import at, checked, key_codes, objects, shapes, stack, working
from .errors import FitcheckError
from .flags import Settings
from .formula import HIGH, VALUE, Constant, Formula, Table
from .numpy_algebra import EQUAL, NUMPY, above, below
from .profile import Profile, best_match
from .record import replace
from .rules import Compiled, Rules
from .run import MAX_ITEMS, Facts, Key, Run
from .scope import Scope
from .vector_search import largest

if TYPE_CHECKING:
    import numpy as np

    from .report import Prepared

__all__ = ["NUMPY", "VectorRun", "evaluate", "stack"]

_COMPILED: WeakKeyDictionary[Rules, dict[str, Compiled]] = WeakKeyDictionary()


def evaluate(
    rules: Rules, facts: Facts | Prepared, flags: Mapping[str, Any], quantity: str
) -> np.ndarray[Any, Any]:
    """
    One quantity for many configurations.

    Parameters
    ----------
    facts : Facts or Prepared
        The run that the configurations start from. Its numbers and words may be arrays themselves
        (see `stack`); a list item whose `count` is an array is left out where that is 0.
    flags : mapping
        Flag id to a value, or to an array or list of values.
    quantity : str
        Id of a formula file, such as `total`. Limits are not looked at; a `Report` has them.

    Returns
    -------
    numpy.ndarray
        float64, bool, or object for words, in the broadcast shape of all arrays.

    Raises
    ------
    InputProblem
        A flag is unknown or out of range, or flags exclude each other in some configuration.
    FitcheckError
        What the exact evaluator raises for the first configuration without an answer.
    """
    return VectorRun.over(rules, facts, flags).array(quantity)


class VectorRun(Run):
    """A run whose flags, facts and list items may be arrays; `given` still has exact scalars."""

    def __init__(
        self,
        rules: Rules,
        facts: Facts,
        band: int = VALUE,
        values: dict[Key, Any] | None = None,
        *,
        given: Facts,
        parent: Run | None = None,
    ) -> None:
        super().__init__(rules, facts, band, values)
        self.given = given
        self.parent = parent  # keeps its items, and so their id, alive
        self.searching = parent is not None and parent.searching
        self.best: dict[str, Any] = {}  # kind to profiles

    @classmethod
    def over(cls, rules: Rules, facts: Facts | Prepared, flags: Mapping[str, Any]) -> VectorRun:
        """A run over these facts with other flags; raises `InputProblem`."""
        start = facts if isinstance(facts, Facts) else facts.run_with(()).facts
        try:
            swept = {name: checked(rules.flags, name, value) for name, value in flags.items()}
        except ImportError:
            raise FitcheckError("Arrays need NumPy: pip install numpy.") from None
        given = Facts(start.settings.changed(**swept), start.records, start.lists)
        run = cls(rules, working(given), given=given)
        run.refuse_conflicts(swept)
        return run

    @property
    def shape(self) -> tuple[int, ...]:
        """The broadcast shape of every array in the run."""
        import numpy as np

        facts = self.facts
        return np.broadcast_shapes(*shapes([facts.settings.values, facts.records, facts.lists]))

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """A quantity in the shape of the run; raises `FitcheckError` where it has no value."""
        import numpy as np

        try:
            with np.errstate(all="ignore"):
                value = self.value(name)
        except EvaluationError as error:
            raise FitcheckError(f"`{name}` for many configurations: {error}.") from None
        if isinstance(value, (str, tuple, Coded)):
            words = coded(value)
            value = objects(words.values)[words.codes]
            bad = np.array([v is None for v in words.values])[words.codes]
        else:
            bad = ~np.isfinite(value)
        if bad.any():
            index = int(np.argmax(np.broadcast_to(bad, self.shape)))
            self.configuration(index).value(name)  # raises what is wrong there
            raise FitcheckError(f"`{name}` has no value as a float in configuration {index}.")
        return np.array(np.broadcast_to(value, self.shape))

    def configuration(self, index: int) -> Run:
        """The exact run of one configuration, counted through the arrays in C order."""
        facts, shape = self.given, self.shape
        settings = Settings(at(facts.settings.values, index, shape), facts.settings.origin)
        records, lists = at(facts.records, index, shape), at(facts.lists, index, shape)
        return Run(self.rules, Facts(settings, records, lists), self.band)

    def refuse_conflicts(self, swept: Mapping[str, Any]) -> None:
        """Raise `InputProblem` for the first configuration with flags that exclude each other."""
        import numpy as np

        flags = self.rules.flags
        for conflict in flags.conflicts:
            if not swept.keys() & ex.names(conflict.when) or not swept.keys() >= {*conflict.given}:
                continue
            scope = flags.scope().inside(conflict.when)
            holds = compile_tree(conflict.when, NUMPY, scope)(self, NO_LOOP)
            for name in conflict.given:  # only a value that is not the default was chosen
                holds = both(holds, negate(EQUAL(self.flag(name), flags.flags[name].default)))
            if possible(holds):
                index = int(np.argmax(np.broadcast_to(holds, self.shape)))
                settings = self.configuration(index).facts.settings
                flags.refuse_conflicts(settings, dict.fromkeys(conflict.given))

    # what compiled expressions ask for, beside flag, fact, items, value and value_at

    def cell(self, table: Table, key: tuple[Any, ...] | None = None) -> Any:
        axes = tuple(map(self.flag, table.axes)) if key is None else key
        return lookup(lambda *values: table.cell(values), *axes)

    def profile_value(self, kind: str, name: str) -> Any:
        def value(profile: Profile | None) -> Any:
            if profile is None or name not in profile.values:
                return None
            return profile.value(name, self.band)

        if kind not in self.best:
            self.best[kind] = self.best_profiles(kind)
        return lookup(value, self.best[kind])

    def best_profiles(self, kind: str) -> Any:
        """The best match for each combination of what the profiles of a kind ask for."""
        import numpy as np

        profiles = self.rules.profiles.get(kind, ())
        exact = Run(self.rules, self.given)
        facts = {key: exact.match_fact(key) for p in profiles for key in p.matches}
        codes: Any = np.zeros((), np.intp)
        for key, fact in facts.items():
            wanted = [p.matches[key] for p in profiles if key in p.matches]
            number, size = key_codes(fact, wanted)
            codes = codes * size + number
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        found: list[Profile | None] = []
        for index in first:
            here = at(facts, int(index), codes.shape)
            try:
                found.append(best_match(profiles, here.get)[0])
            except FitcheckError:  # none, or a tie
                found.append(None)
        return Coded(tuple(found), which.reshape(codes.shape))

    def _derived_list(self, name: str) -> list[dict[str, Any]]:
        import numpy as np

        tree = self.rules.lists[name]
        reads = {f.id: f.per for f in self.rules.formulas.values()}
        scope = Scope({}, {}, {}, self.rules.flags.flags, reads)
        count = np.asarray(compile_tree(tree, NUMPY, scope.inside(tree))(self, NO_LOOP), float)
        if not count.size or not 0 <= count.max() <= MAX_ITEMS:
            raise EvaluationError(f"the list `{name}` has no possible length")
        return [
            {"index": float(i), "title": f"{name} {i}", PRESENT: settled(count > i)}
            for i in range(int(count.max()))
        ]

    def _compute(self, name: str, loop: Mapping[str, Any], key: Key) -> Any:
        compiled = self.compiled(name)
        formula = compiled.formula
        if compiled.condition is not None:
            self.refuse_nested(formula)
            return self.largest(formula, compiled.condition)
        if formula.band is not None:
            of, end = formula.band
            return self.at_band(end).value(of)
        result: Any = NAN
        held: Any = 0.0
        for _, when, expression in compiled.cases:
            truth = True if when is None else settled(when(self, loop))
            held = held + 1.0 * truth
            if possible(truth):
                value = expression(self, loop)
                if formula.rounded:
                    value = above(value) if self.band == HIGH else below(value + 0.5)
                result = select(truth, value, result)
        return select(EQUAL(held, 1.0), result, NAN)

    def compiled(self, name: str) -> Compiled:
        """The formula's cases over arrays, compiled once for these rules."""
        known = _COMPILED.setdefault(self.rules, {})
        if name not in known:
            known[name] = self.rules.compile_formula(with_floats(self.rules.formula(name)), NUMPY)
        return known[name]

    def at_band(self, end: int) -> VectorRun:
        return VectorRun(self.rules, self.facts, end, given=self.given, parent=self)

    def with_flag(self, name: str, value: Any) -> VectorRun:
        touched = self.rules.affected[name]
        kept = {k: v for k, v in self.values.items() if k[0] not in touched}
        facts, given = (
            Facts(f.settings.changed(**{name: value}), f.records, f.lists)
            for f in (self.facts, self.given)
        )
        return VectorRun(self.rules, facts, self.band, kept, given=given, parent=self)

    def largest(self, formula: Formula, condition: Thunk) -> Any:
        """The searches of `Run.search`, side by side."""
        import numpy as np

        assert formula.search is not None
        flag, margin = formula.search.flag, self.margin(formula)
        undefined = np.zeros(self.shape, bool)

        def tried(n: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
            there = self.with_flag(flag, n)
            there.searching = True
            truth = np.asarray(condition(there, NO_LOOP), float)
            np.logical_or(undefined, np.isnan(truth), out=undefined)
            room = np.asarray(margin(there), float)
            return np.broadcast_to(truth == 1, n.shape), np.broadcast_to(room, n.shape)

        good = largest(self.shape, float(self.rules.flags.flags[flag].high), tried)
        return np.where(undefined, NAN, good)

    def margin(self, formula: Formula) -> Callable[[VectorRun], Any]:
        """How far the condition of a search is from its edge; NaN where it is no comparison."""
        assert formula.search is not None
        sides = comparison(self.rules, formula, formula.search.condition, ("search", "while"))
        if sides is None:
            return lambda run: NAN
        place, path, *trees = sides
        floats = with_floats(place)
        low, high = (self.rules.compile(floats, tree, path, NUMPY) for tree in trees)
        return lambda run: high(run, NO_LOOP) - low(run, NO_LOOP)


def with_floats(formula: Formula) -> Formula:
    """The formula with floats for its constants, because NumPy makes objects of fractions."""
    return replace(formula, constants={n: floated(c) for n, c in formula.constants.items()})


def floated(constant: Constant) -> Constant:
    """The constant with floats."""
    band: Any = tuple(map(float, constant.band))
    return replace(constant, band=band)
