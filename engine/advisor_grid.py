"""The points of a sweep: a block for each combination of what is swept beside the axes.

Small grids are evaluated exactly, point by point; larger ones as arrays (`vectorized.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import expression as ex
from .advise_rules import Plan
from .errors import FitcheckError, Refusal
from .evaluation import NO_LOOP
from .formula import Formula, Limit
from .record import record
from .report import Prepared, is_refused, limit_holds, sentence, status_of
from .rules import Rules
from .run import Run

FEW = 500  # points that take less time one by one than NumPy takes to be imported
MOST_WITHOUT_NUMPY = 5_000  # points, about a second
MOST = 10_000_000  # points of a whole sweep
CHUNK = 250_000  # points at a time, so that arrays in between stay small
NAN = math.nan
Progress = Callable[[int], None]  # told of every few points that are done


@record(identity=True)
class Block:
    """
    The grid for one combination of the other swept flags and cards.

    `total` (bytes; NaN where a limit refuses the point), `fits` and `safe` are flat and in C order
    of the axes: NumPy arrays, or lists where the grid is small. `safe` leaves limits out that only
    hold at some points, so one point alone is asked for exactly.
    """

    settings: Mapping[str, Any]  # swept flags beside the axes
    gpu: str | None  # as it was asked for
    prepared: Prepared
    total: Any
    fits: Any
    safe: Any
    refused: int


def size_of(axes: Sequence[Sequence[int]]) -> int:
    """Points of one block."""
    return math.prod(map(len, axes))


def count(truths: Any) -> int:
    """How many are true, in a list or an array."""
    return int(truths.sum()) if hasattr(truths, "sum") else sum(truths)


def at(axes: Sequence[Sequence[int]], index: int) -> tuple[int, ...]:
    """The values of the axes at a point."""
    found = []
    for values in reversed(axes):
        index, position = divmod(index, len(values))
        found.append(values[position])
    return tuple(reversed(found))


def numpy_wanted(points: int) -> bool:
    """Whether arrays are used; raises `FitcheckError` where they are needed and not there."""
    if points <= FEW:
        return False
    try:
        import numpy  # noqa: F401
    except ImportError:
        if points <= MOST_WITHOUT_NUMPY:
            return False
        raise FitcheckError(
            f"A sweep over {points:,} points needs NumPy: pip install numpy. Without it "
            f"{MOST_WITHOUT_NUMPY:,} points are possible."
        ) from None
    return True


def moving_limits(rules: Rules, axes: Sequence[str]) -> list[tuple[Formula, Limit]]:
    """The limits that refuse a run and may hold at some points of a grid only."""
    found = []
    for formula in rules.formulas.values():
        for limit in formula.limits:
            if limit.level == "refuse" and limit.when_text:
                names = ex.names(ex.parse(limit.when_text))
                if any(_moves(rules, formula, name, axes) for name in names):
                    found.append((formula, limit))
    return found


def _moves(rules: Rules, formula: Formula, name: str, axes: Sequence[str]) -> bool:
    symbol = formula.symbols.get(name)
    sources = {f"flags.{axis}" for axis in axes}
    return (
        name in axes
        or (symbol is not None and symbol.source in sources)
        or any(name in rules.affected[axis] for axis in axes)
    )


def check_block(plan: Plan, prepared: Prepared, axes: Sequence[Sequence[int]]) -> None:
    """Raise `FitcheckError` where no point of a block is modelled, whatever the axes are."""
    run = with_values(prepared.run_with(()), plan.flags, at(axes, 0))
    moving = moving_limits(prepared.rules, plan.flags)
    if is_refused(run):
        for formula in prepared.rules.formulas.values():
            for limit in formula.limits:
                fixed = (formula, limit) not in moving
                if limit.level == "refuse" and fixed:
                    loop = limit_holds(run, formula, limit)
                    if loop is not None:
                        raise Refusal(sentence(run, formula, limit.says, loop))
    run.value(plan.price)


def with_values(run: Run, flags: Sequence[str], values: Sequence[int]) -> Run:
    """The run at a point."""
    for name, value in zip(flags, values, strict=True):
        run = run.with_flag(name, value)
    return run


def block_of(
    plan: Plan,
    prepared: Prepared,
    axes: Sequence[Sequence[int]],
    others: tuple[Mapping[str, Any], str | None],
    arrays: bool,
    done: Progress,
) -> Block:
    """Every point of one combination; raises `FitcheckError` where none of them is modelled."""
    check_block(plan, prepared, axes)
    settings, gpu = others
    found = (by_arrays if arrays else one_by_one)(plan, prepared, axes, done)
    return Block(settings, gpu, prepared, *found)


Found = tuple[Any, Any, Any, int]  # totals, fits, safe, and how many points are refused


def one_by_one(
    plan: Plan, prepared: Prepared, axes: Sequence[Sequence[int]], done: Progress
) -> Found:
    """Totals, fits and safe by the exact evaluator, and how many points are refused."""
    limits = moving_limits(prepared.rules, plan.flags)
    total: list[float] = []
    fits: list[bool] = []
    safe: list[bool] = []
    for run in runs(prepared.run_with(prepared.unsettled()), plan.flags, axes):
        refused = any(limit_holds(run, *limit) is not None for limit in limits)
        total.append(NAN if refused else float(run.value(plan.price)))
        fits.append(not refused and bool(run.value(plan.fits)))
        safe.append(fits[-1] and status_of(run).safe)
        if len(total) % 100 == 0:
            done(100)
    return total, fits, safe, sum(map(math.isnan, total))


def runs(run: Run, flags: Sequence[str], axes: Sequence[Sequence[int]]) -> Iterator[Run]:
    """The run at every point, in C order, those of one row sharing what they can."""
    if not flags:
        yield run
        return
    for value in axes[0]:
        yield from runs(run.with_flag(flags[0], value), flags[1:], axes[1:])


def by_arrays(
    plan: Plan, prepared: Prepared, axes: Sequence[Sequence[int]], done: Progress
) -> Found:
    """The same over NumPy arrays, a chunk at a time."""
    import numpy as np

    from .numpy_algebra import NUMPY
    from .vectorized import VectorRun, with_floats

    rules, shape = prepared.rules, tuple(map(len, axes))
    facts = prepared.run_with(prepared.unsettled()).facts
    conditions = [
        (f, rules.compile(with_floats(f), ex.parse(li.when_text), (*li.path, "when"), NUMPY))
        for f, li in moving_limits(rules, plan.flags)
    ]
    statuses = [
        rules.compile(with_floats(s.formula), ex.parse(s.when), ("when",), NUMPY)
        for s in rules.statuses
        if s.safe
    ]
    total, fits = np.empty(shape), np.empty(shape, bool)
    safe, refused = np.zeros(shape, bool), np.zeros(shape, bool)
    for part in parts(shape):
        columns = [
            np.array(values[where], float).reshape([-1 if i == j else 1 for j in range(len(axes))])
            for i, (values, where) in enumerate(zip(axes, part, strict=True))
        ]
        run = VectorRun.over(rules, facts, dict(zip(plan.flags, columns, strict=True)))
        for formula, condition in conditions:
            refused[part] |= over_items(run, formula, condition)
        total[part], fits[part] = run.array(plan.price), run.array(plan.fits)
        with np.errstate(all="ignore"):
            for holds in statuses:
                safe[part] |= np.broadcast_to(np.asarray(holds(run, NO_LOOP), bool), run.shape)
        done(math.prod(run.shape))
    total[refused] = NAN
    fits &= ~refused
    return total.ravel(), fits.ravel(), (safe & fits).ravel(), int(refused.sum())


def over_items(run: Any, formula: Formula, condition: Any) -> Any:
    """Where a limit holds, for any item of its list where it has one."""
    import numpy as np

    from .evaluation import CURRENT

    loops = [NO_LOOP] if formula.per is None else [{CURRENT: i} for i in run.items(formula.per)]
    found = np.zeros(run.shape, bool)
    with np.errstate(all="ignore"):
        for loop in loops:
            found |= np.broadcast_to(np.asarray(condition(run, loop), bool), run.shape)
    return found


def parts(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Slices of a grid, none with more than `CHUNK` points (of a single row, whatever it has)."""
    steps, rest = list(shape), math.prod(shape)
    for position, length in enumerate(shape):
        rest //= length
        steps[position] = max(1, min(length, CHUNK // rest)) if rest else length
        if steps[position] > 1:
            break
    ranges = [range(0, n, step) for n, step in zip(shape, steps, strict=True)]
    for starts in itertools.product(*ranges):
        yield tuple(slice(s, s + step) for s, step in zip(starts, steps, strict=True))
