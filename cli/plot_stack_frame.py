"""What a file and a terminal draw alike of stacks: heights, their labels, and how parts differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fitcheck.cli.plot_frame import ABOVE, amount
from fitcheck.cli.words import whole_mib
from fitcheck.engine.plot_rules import PHASES

if TYPE_CHECKING:
    from fitcheck.engine.stacks import Part, Stack


def top_of(picture: Stack) -> float:
    """The upper bound, with room for a label above what is highest."""
    heights = [
        *(c.total for c in picture.columns),
        picture.high,
        *(v for _, v in heights_of(picture)),
    ]
    return max(*heights, 1) * (1 + ABOVE)


def heights_of(picture: Stack) -> list[tuple[str, int]]:
    """The limit and the marks, each with its label."""
    limit = [picture.limit] if picture.limit else []
    return [*limit, *picture.marks]


def height_label(label: str, value: int) -> str:
    return f"{amount(value)} {label}"


def size_label(picture: Stack, part: Part) -> tuple[str, str]:
    """MiB and share of a component at the peak; one that is not there has no share."""
    total = picture.highest.total
    if part in picture.absent or not total:
        return f"{whole_mib(part.bytes)} MiB", "not at the peak"
    return f"{whole_mib(part.bytes)} MiB", f"{part.bytes / total * 100:.1f} %"


def banded(picture: Stack) -> bool:
    """Whether the band of the peak is wide enough to be seen."""
    return picture.high - picture.low > top_of(picture) / 500


def notes(picture: Stack) -> str:
    """The evidence, and what the axis is not."""
    order = "; phases in order, their width is no time" if picture.kind == PHASES else ""
    return f"evidence: {picture.grade}{order}"


def band_label(picture: Stack) -> str:
    """Both ends of the band of the peak; empty where it cannot be seen."""
    if not banded(picture):
        return ""
    low, high = amount(picture.low), amount(picture.high)
    if low == high:  # in words of this size
        return f"band {whole_mib(picture.low)} to {whole_mib(picture.high)} MiB"
    return f"band {low} to {high}"
