"""The edge of what fits: points than which none is better in both objectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import expression as ex
from .advise_rules import Plan
from .advisor_grid import Block, at, size_of
from .evaluation import NO_LOOP
from .flags import FlagValues, Settings
from .record import record
from .rules import Rules

TIE = 1e-9  # relative difference of totals that are called equal
Axes = Sequence[Sequence[int]]


@record
class Member:
    """A point of the frontier: its block, its values, its objectives and its total."""

    block: int
    values: tuple[int, ...]
    objectives: tuple[int, int]
    total: float


@record
class Group:
    """Members of one block with the same objectives and cost, the canonical split first."""

    members: tuple[Member, ...]

    @property
    def first(self) -> Member:
        return self.members[0]


def objectives_at(rules: Rules, plan: Plan, values: Sequence[int]) -> tuple[int, int]:
    """Both objectives at a point, exactly."""
    flags = FlagValues(Settings(dict(zip(plan.flags, values, strict=True)), {}))
    first, second = (
        rules.condition(objective.value, plan.source)(flags, NO_LOOP)
        for objective in plan.objectives
    )
    return first, second


def groups(
    rules: Rules, plan: Plan, axes: Axes, blocks: Sequence[Block], kind: str = "fits"
) -> list[Group]:
    """
    The frontier over all blocks, best first: more of the first objective, then of the second, then
    the lower total. `kind` is `fits` or `safe`, the points that count.
    """
    chosen = [getattr(block, kind) for block in blocks]
    arrays = any(hasattr(truth, "dtype") for truth in chosen)
    find = front_of_arrays if arrays else front_of_lists
    by_point = find(rules, plan, axes, chosen)
    found: dict[Any, list[Member]] = {}
    apart = [i for i, name in enumerate(plan.flags) if name not in plan.splits]
    for index in by_point:
        values = at(axes, index)
        objectives = objectives_at(rules, plan, values)
        for number, (block, truth) in enumerate(zip(blocks, chosen, strict=True)):
            if truth[index]:
                key = (number, objectives, tuple(values[i] for i in apart))
                member = Member(number, values, objectives, float(block.total[index]))
                found.setdefault(key, []).append(member)
    result = [Group(tied) for members in found.values() for tied in ties(plan, members)]
    order = [block.prepared.card.total for block in blocks]

    def best(group: Group) -> tuple[Any, ...]:
        first = group.first
        more = tuple(-objective for objective in first.objectives)
        return (more, first.total, order[first.block], first.block)

    return sorted(result, key=best)


def ties(plan: Plan, members: Sequence[Member]) -> Iterator[tuple[Member, ...]]:
    """Members of one cost each, those with the largest value of the first split axis first."""
    rest = sorted(members, key=lambda m: m.total)
    places = [plan.flags.index(name) for name in plan.splits]
    while rest:
        limit = rest[0].total * (1 + TIE)
        tied = [m for m in rest if m.total <= limit]
        rest = rest[len(tied) :]
        yield tuple(sorted(tied, key=lambda m: [-m.values[place] for place in places]))


def front_of_lists(
    rules: Rules, plan: Plan, axes: Axes, chosen: Sequence[Sequence[bool]]
) -> list[int]:
    """The points of the frontier in C order, for lists of truths."""
    points = [i for i in range(size_of(axes)) if any(truth[i] for truth in chosen)]
    values = {i: objectives_at(rules, plan, at(axes, i)) for i in points}
    best: dict[int, int] = {}
    for first, second in values.values():
        best[first] = max(second, best.get(first, second))
    kept: Mapping[int, int] = dict(undominated(best))
    return [i for i in points if kept.get(values[i][0]) == values[i][1]]


def undominated(best: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Of the best second objective for each first one, those that no larger first one reaches."""
    reached = None
    for first in sorted(best, reverse=True):
        if reached is None or best[first] > reached:
            reached = best[first]
            yield first, reached


def front_of_arrays(
    rules: Rules, plan: Plan, axes: Axes, chosen: Sequence[Sequence[bool]]
) -> list[int]:
    """The same for NumPy arrays."""
    import numpy as np

    from .algebra import compile_tree
    from .numpy_algebra import NUMPY

    shape = tuple(map(len, axes))
    columns = {
        name: np.array(values, float).reshape([-1 if i == j else 1 for j in range(len(axes))])
        for i, (name, values) in enumerate(zip(plan.flags, axes, strict=True))
    }
    flags, scope = FlagValues(Settings(columns, {})), rules.open_scope()
    any_of = np.logical_or.reduce([np.asarray(truth) for truth in chosen])
    points = np.flatnonzero(any_of)
    first, second = (
        np.broadcast_to(
            compile_tree(tree, NUMPY, scope.inside(tree))(flags, NO_LOOP), shape
        ).reshape(-1)[points]
        for tree in (ex.parse(objective.value) for objective in plan.objectives)
    )
    levels, which = np.unique(first, return_inverse=True)
    best = np.full(len(levels), -np.inf)
    np.maximum.at(best, which, second)
    beyond = np.maximum.accumulate(np.append(best, -np.inf)[::-1])[::-1][1:]
    kept = (best > beyond)[which] & (second == best[which])
    found: list[int] = points[kept].tolist()
    return found
