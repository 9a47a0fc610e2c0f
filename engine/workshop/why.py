"""Why one case, profile, status or architecture holds for a run, and why the others do not.

A condition is taken apart at its `and`, `or` and `not`; every part is evaluated for the run, with
the values of the names in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import expression as ex
from ..algebra import NO_LOOP, EvaluationError, Loop
from ..architecture import Architecture
from ..dimensions_names import unit_text_of
