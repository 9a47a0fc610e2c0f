"""Estimate whether a fine-tuning run fits on a GPU, and where every byte of it goes.

`import fitcheck` stays cheap: each public name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "1.0.0.dev0"

__all__ = [
    "Advice",
    "FitcheckError",
    "InputProblem",
    "Refusal",
    "Report",
    "RuleFileError",
    "__version__",
    "advise",
    "estimate",
]

if TYPE_CHECKING:
    from fitcheck.engine.advice import Advice
    from fitcheck.engine.api import advise, estimate
    from fitcheck.engine.errors import FitcheckError, InputProblem, Refusal, RuleFileError
    from fitcheck.engine.report import Report
else:
    # Hidden from type checkers: to them a module with __getattr__ has every name, typos included.
    _HOMES = {
        "Advice": "fitcheck.engine.advice",
        "FitcheckError": "fitcheck.engine.errors",
        "InputProblem": "fitcheck.engine.errors",
        "Refusal": "fitcheck.engine.errors",
        "RuleFileError": "fitcheck.engine.errors",
        "Report": "fitcheck.engine.report",
        "advise": "fitcheck.engine.api",
        "estimate": "fitcheck.engine.api",
    }

    def __getattr__(name: str) -> object:
        """Import a public name on first use (PEP 562) and keep it for the next."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
