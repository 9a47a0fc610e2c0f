"""What compiled expressions are: functions of a run and of the items bound to loop variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Loop = Mapping[str, Any]
Thunk = Callable[[Any, Loop], Any]  # (run, items bound to loop variables) -> value

NO_LOOP: Loop = {}
CURRENT = ""  # the key of the list item that a `per:` formula is evaluated for


class EvaluationError(Exception):
    """The arithmetic has no answer (division by zero, an empty max)."""
