"""Many configurations at once: the compiled formulas over NumPy arrays.

Any flag, card figure or model dimension may be an array; arrays broadcast, so three axes of a grid
can stay three short arrays. Results are float64 and agree with the exact evaluator (`run.py`) to
about 1e-15. A configuration that the exact evaluator refuses is refused with the same message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arrays import (
    NUMPY,
)

if TYPE_CHECKING:
    pass

__all__ = ["NUMPY", "VectorRun", "evaluate", "stack"]
