"""A sweep as a picture needs it: what fits over the two objectives, and its edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .advisor_front import objectives_at
from .advisor_grid import at, size_of
from .errors import InputProblem
from .record import record

if TYPE_CHECKING:
    from .advice import Advice

MOST = 20_000  # points that are drawn
NOTHING, FITS, SAFE = "does not fit", "fits", "safe"
ORDER = (NOTHING, FITS, SAFE)


@record
class Spot:
    """The best that any point of the sweep reaches at these objectives."""

    x: int
    y: int
    state: str


@record
class Mark:
    """A row of the frontier: its objectives, bytes and splits."""

    x: int
    y: int
    total: int
    splits: tuple[tuple[int, ...], ...]
    safe: bool


@record(identity=True)
class Edge:
    """
    `spots` in the order of x and y, `marks` the rows of the frontier, best first; `ceilings` are
    (axis, value) of the anchor, for an objective each, where the sweep reaches them.
    """

    x_title: str
    y_title: str
    spots: tuple[Spot, ...]
    marks: tuple[Mark, ...]
    ceilings: tuple[tuple[str, int], ...]

    @property
    def xs(self) -> list[int]:
        """The values along the axis, each once."""
        return sorted({spot.x for spot in self.spots})

    @property
    def ys(self) -> list[int]:
        """The values upwards, each once."""
        return sorted({spot.y for spot in self.spots})


def edge(advice: Advice) -> Edge:
    """
    What is drawn of a sweep; raises `InputProblem` where it has too many points for a picture.
    """
    plan, axes = advice.plan, [advice.axes[name] for name in advice.plan.flags]
    size = size_of(axes)
    if size > MOST:
        raise InputProblem(f"A picture shows at most {MOST:,} points, and the sweep has {size:,}.")
    found: dict[tuple[int, int], str] = {}
    for index in range(size):
        values = at(axes, index)
        place = objectives_at(advice.rules, plan, values)
        state = NOTHING
        for block in advice.blocks:
            if block.fits[index]:
                state = SAFE if block.safe[index] else max(state, FITS, key=ORDER.index)
            if state == SAFE:
                break
        found[place] = max(found.get(place, NOTHING), state, key=ORDER.index)
    first, second = (objective.id for objective in plan.objectives)
    marks = tuple(
        Mark(r.objectives[first], r.objectives[second], r.total, r.splits, r.status.safe)
        for r in advice.frontier
    )
    ids = {first: 0, second: 1}
    return Edge(
        plan.objectives[0].title,
        plan.objectives[1].title,
        tuple(Spot(x, y, state) for (x, y), state in sorted(found.items())),
        marks,
        tuple((c.axis, c.value) for c in advice.ceilings if c.axis in ids and c.value),
    )
