"""`--plot`: where the pictures go. Nothing that draws is imported before it is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fitcheck.engine.atomic_file import replace
from fitcheck.engine.errors import FitcheckError, InputProblem

if TYPE_CHECKING:
    from fitcheck.engine.report import Report
    from fitcheck.engine.rules import Rules

TERMINAL = ("-", "terminal")
FORMATS = {".png": "png", ".svg": "svg"}


def in_terminal(target: str) -> bool:
    """Whether the pictures are drawn in characters."""
    return target in TERMINAL


def form_of(target: str) -> str | None:
    """The format that a file's suffix asks for; None for any other suffix."""
    return FORMATS.get(os.path.splitext(target)[1].lower())


def check_target(target: str) -> None:
    """Raise `InputProblem` before anything is computed where the pictures could not be drawn."""
    if in_terminal(target):
        return
    if form_of(target) is None:
        raise InputProblem(
            f"--plot {target}: the name has to end in .png or .svg; - draws in the terminal."
        )
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise InputProblem(f"--plot {target}: there is no folder {folder}.")
    if os.path.isdir(target):
        raise InputProblem(f"--plot {target}: this is a folder; give the name of a file.")
    try:
        import fitcheck.cli.plot_file  # noqa: F401 (imports matplotlib)
    except ImportError:
        raise InputProblem(
            f"--plot {target} needs matplotlib, which the extra fitcheck-llm[plot] brings: "
            "python -m pip install matplotlib. Without it --plot - draws in the terminal."
        ) from None


def check_names(rules: Rules, names: Sequence[str], target: str | None) -> None:
    """Raise `InputProblem` before anything is computed where --picture names none."""
    from fitcheck.engine.pictures import refuse_unknown

    if target is None:
        raise InputProblem("--picture chooses what --plot draws: give --plot FILE too.")
    refuse_unknown(rules.plots, names)


def to_file(report: Report, target: str, names: Sequence[str] = ()) -> None:
    """Write the pictures in one step, so that there is never half a file; raises FitcheckError."""
    from fitcheck.cli.plot_file import draw

    form = form_of(target)
    assert form is not None  # check_target has refused others
    made = draw(report, form, names)
    try:
        replace(target, made)
    except OSError as error:
        raise FitcheckError(f"--plot {target}: {error.strerror or error}.") from None


def to_terminal(report: Report, values: Mapping[str, Any]) -> None:
    """
    Below the answer; on standard error beside --json and --derive, whose output others read.
    """
    from fitcheck.cli.output import write, write_error
    from fitcheck.cli.plot_terminal import drawing
    from fitcheck.cli.screen import console, show

    apart = values["as_json"] or values["derive"] is not None
    stream = sys.stderr if apart else sys.stdout
    if stream is None:
        return
    target = console(values["no_color"], stream=stream)
    lines = drawing(report, target.width, stream.encoding, values.get("picture", ()))
    show([*([] if apart else [""]), *lines], target=target, to=write_error if apart else write)
