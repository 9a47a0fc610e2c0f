"""The layers of a model as a strip of letters, and its parameters by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from fitcheck.cli.bars import bar
from fitcheck.cli.components import colour_of

STRIP = 64  # letters in one line
BAR, SHORTEST = 24, 6
GAP, SHARE = 2, 8  # between two columns; a share with it
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def positions(group: Mapping[str, Any]) -> list[int]:
    """The layers of a group, counted from 0."""
    found: list[int] = []
    for part in str(group["places"]).split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def letters(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """A letter for each group: that of its first word if it is free."""
    taken: list[str] = []
    for group in groups:
        word = next((w for w in str(group["title"]).split() if w.isalpha()), "layer").upper()
        free = [c for c in (*word, *LETTERS) if c not in taken and c in LETTERS]
        taken.append(free[0] if free else "?")
    return taken


def layer_picture(groups: Sequence[Mapping[str, Any]], width: int) -> list[Any]:
    """A strip with a letter for each layer, and what each letter stands for."""
    signs = letters(groups)
    placed = [(place, number) for number, g in enumerate(groups) for place in positions(g)]
    strip = [number for _, number in sorted(placed)]
    lines: list[Any] = []
    room = min(STRIP, max(8, width - 10))
    for start in range(0, len(strip), room):
        text = Text(f"{start:>6}  ", style="dim")
        for place in range(start, min(start + room, len(strip))):
            number = strip[place]
            text.append(signs[number], style=f"not dim {colour_of(number)}")
        lines.append(text)
    table = Table.grid(padding=(0, 2, 0, 0))
    for number, (sign, group) in enumerate(zip(signs, groups, strict=True)):
        table.add_row(Text(f"     {sign}", style=colour_of(number)), group["title"], says(group))
    return [*lines, "", table]


def says(group: Mapping[str, Any]) -> str:
    """The widths of a layer that decide what it holds."""
    found = [f"hidden {group.get('hidden_size', 0):,}"]
    for name, word in (
        ("query_width", "queries"),
        ("key_width", "keys"),
        ("plain_mlp_width", "MLP of two matrices"),
        ("window", "window"),
    ):
        value = group.get(name, 0)
        if isinstance(value, int) and value:
            found.append(f"{word} {value:,}")
    chosen, experts = group.get("chosen_experts", 0), group.get("router_width", 0)
    width = expert_width(group)
    rest = group.get("mlp_width", 0) - group.get("routed_rows", 0) * width
    if width and experts:
        found.append(f"MLP {width:,} in each of {experts:,} experts, {chosen:,} chosen")
    if rest > 0:
        found.append(f"MLP {rest:,}{' for every token' if width else ''}")
    return ", ".join(found)


def expert_width(group: Mapping[str, Any]) -> int:
    """Inner width of one expert: what leads back to the width that experts read; 0 without any."""
    experts = [m for m in group["modules"] if m["role"]]
    back = (m["d_in"] for m in reversed(experts) if m["d_out"] == experts[0]["d_in"])
    return next(back, 0)


def part_table(total: int, parts: Sequence[tuple[str, int]], width: int) -> Table:
    """Parameters by part with their share; in a narrow terminal without bars, then without it."""
    names = max(len(name) for name, _ in (*parts, ("total", 0)))
    figures = max(len(f"{total:,}"), len("parameters")) + GAP
    room = width - names - GAP - figures - SHARE
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("part", overflow="fold")
    table.add_column("parameters", justify="right", no_wrap=True, min_width=figures - GAP)
    shares, bars = room >= -names // 2, room >= SHORTEST
    if shares:
        table.add_column("of all", justify="right", no_wrap=True, min_width=SHARE - GAP)
    if bars:
        table.add_column("", no_wrap=True)
    for number, (name, value) in enumerate(parts):
        share = value / total if total else 0
        chart = Text(bar(value, total, min(BAR, room)), style=colour_of(number))
        table.add_row(name, f"{value:,}", *[f"{share:.1%}"][:shares], *[chart][:bars])
    table.add_row("total", f"{total:,}", *["100.0%"][:shares], *[""][:bars], style="bold")
    return table
