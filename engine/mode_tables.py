"""Tables of a mode: one line for each item of a list, such as the cards of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .evaluation import NO_LOOP
from .record import record
from .template import MIB

if TYPE_CHECKING:
    from .report import Report

BYTES = "byte"


@record
class Shown:
    """A table that holds for a run: exact values, and the unit of each column."""

    id: str
    title: str
    columns: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_list(self) -> list[dict[str, Any]]:
        """The form in the JSON contract: bytes as MiB with two decimals under `NAME_mib`."""
        found = []
        for index, row in enumerate(self.rows):
            line: dict[str, Any] = {"index": index}
            for head, unit, value in zip(self.columns, self.units, row, strict=True):
                name = head.replace(" ", "_")
                in_mib = unit == BYTES
                line[f"{name}_mib" if in_mib else name] = round(value / MIB, 2) if in_mib else value
            found.append(line)
        return found


def tables(report: Report) -> list[Shown]:
    """The tables of the report's mode whose condition holds; none for rules without a mode."""
    rules, run = report.prepared.rules, report.run
    mode = rules.mode
    found = []
    for index, table in enumerate(mode.tables if mode else ()):
        assert mode is not None
        if not rules.function(mode.formula, table.when, ("tables", index, "when"))(run, NO_LOOP):
            continue
        names = tuple(table.columns.values())
        rows = tuple(tuple(run.value_at(n, item) for n in names) for item in run.items(table.per))
        units = tuple(rules.formula(n).unit.text for n in names)
        found.append(Shown(table.id, table.title, tuple(table.columns), units, rows))
    return found
