"""`--plot`: where the pictures go. Nothing that draws is imported before it is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fitcheck.engine.atomic_file import replace
from fitcheck.engine.errors import FitcheckError, InputProblem

if TYPE_CHECKING:
    from fitcheck.engine.advice import Advice
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
    write_file(target, draw(report, form, names))


def edge_to(advice: Advice, values: Mapping[str, Any]) -> None:
    """The edge of a sweep, to the file or the terminal that --plot names; raises FitcheckError."""
    from fitcheck.cli.output import say
    from fitcheck.engine.edge import edge

    target, found = values["plot"], edge(advice)
    if in_terminal(target):
        from fitcheck.cli.plot_edge_terminal import drawing

        below(values, lambda width, encoding: drawing(found, width, encoding))
        return
    from fitcheck.cli.plot_edge_file import draw

    write_file(target, draw(found, advice, str(form_of(target))))
    say("note", f"the picture is in {target}", values["no_color"])


def write_file(target: str, made: bytes) -> None:
    """A file in one step; raises FitcheckError."""
    try:
        replace(target, made)
    except OSError as error:
        raise FitcheckError(f"--plot {target}: {error.strerror or error}.") from None


def to_terminal(report: Report, values: Mapping[str, Any]) -> None:
    """
    Below the answer; on standard error beside --json and --derive, whose output others read.
    """
    from fitcheck.cli.plot_terminal import drawing

    names = values.get("picture", ())
    below(values, lambda width, encoding: drawing(report, width, encoding, names))


def below(values: Mapping[str, Any], lines: Callable[[int, str | None], Iterable[Any]]) -> None:
    """Lines of a drawing that is as wide as the terminal, for its encoding."""
    from fitcheck.cli.output import write, write_error
    from fitcheck.cli.screen import console, show

    apart = values["as_json"] or values.get("derive") is not None
    stream = sys.stderr if apart else sys.stdout
    if stream is None:
        return
    target = console(values["no_color"], stream=stream)
    found = lines(target.width, stream.encoding)
    show([*([] if apart else [""]), *found], target=target, to=write_error if apart else write)
