"""The largest whole number for which a condition holds, for many configurations side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Tried = Callable[[Array], tuple[Array, Array]]


def largest(shape: tuple[int, ...], top: float, tried: Tried) -> Array:
    """
    The largest n from 1 to `top` for which the condition holds, 0 where 1 does not.

    Every answer was tried: the condition holds at n and not at n + 1. Where to try next is guessed
    from how far the condition is from its edge, so that a straight line takes four tries.

    Parameters
    ----------
    tried : callable
        An array of numbers of this shape to (whether the condition holds, its margin); the margin
        is positive where it holds and only guides the search; NaN where nothing is known.

    Returns
    -------
    numpy.ndarray
        float64 in this shape.
    """
    import numpy as np

    good, bad = np.zeros(shape), np.full(shape, top + 1)
    holds, margin = tried(np.ones(shape))
    good, bad = np.where(holds, 1.0, good), np.where(holds, bad, 1.0)
    above, below = margin, np.full(shape, np.nan)  # the margins at `good` and at `bad`
    step, slope = np.minimum(np.full(shape, 2.0), top), margin
    while (climbing := (good < step) & (bad > top)).any():
        holds, margin = tried(np.where(climbing, step, 1.0))
        slope = np.where(climbing, (above - margin) / (step - good), slope)
        up, down = climbing & holds, climbing & ~holds
        above, below = np.where(up, margin, above), np.where(down, margin, below)
        good, bad = np.where(up, step, good), np.where(down, step, bad)
        edge = np.floor(good + above / slope) + 1
        wide = np.where((edge > good) & np.isfinite(edge), edge, 2 * good)
        step = np.minimum(np.where(up & (good == 2), wide, 2 * good), top)
    _close(good, bad, above, below, tried)
    return good


def _close(good: Array, bad: Array, above: Array, below: Array, tried: Tried) -> None:
    """Move `good` and `bad` until they are neighbours: false position, every fourth try halves."""
    import numpy as np

    last = np.zeros(good.shape)
    tries = 0
    while (apart := bad - good > 1).any():
        share = above / (above - below)
        halve = ~np.isfinite(share) | (tries % 4 == 3)
        guess = good + np.floor((bad - good) * np.where(halve, 0.5, share))
        guess = np.where(apart, np.clip(guess, good + 1, bad - 1), 1.0)
        holds, margin = tried(guess)
        up, down = apart & holds, apart & ~holds
        # an end that stays where it is weighs less every time, so that both come closer
        below = np.where(down, margin, np.where(up & (last > 0), below / 2, below))
        above = np.where(up, margin, np.where(down & (last < 0), above / 2, above))
        np.copyto(good, guess, where=up)
        np.copyto(bad, guess, where=down)
        last = np.where(up, 1, np.where(down, -1, last))
        tries += 1
