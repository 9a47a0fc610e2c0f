"""`--verbose`: what one layer of each group costs, and every quantity behind the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fitcheck.cli.output import harmless
from fitcheck.engine.template import show

if TYPE_CHECKING:
    from fitcheck.engine.formula import Formula
    from fitcheck.engine.report import Report


def verbose_view(report: Report) -> list[RenderableType]:
    """One table for each list that quantities are declared over, then the other quantities."""
    formulas = list(report.prepared.rules.formulas.values())
    parts: list[RenderableType] = []
    for name in dict.fromkeys(f.per for f in formulas if f.per is not None):
        parts += ["", per_item(report, name, [f for f in formulas if f.per == name])]
    components = {c.id for c in report.components}
    rest = [f for f in formulas if f.id in report and f.id not in components]
    return [*parts, "", quantities(report, rest)]


def per_item(report: Report, name: str, formulas: list[Formula]) -> Table:
    """Quantities by row, the items of a list by column."""
    items = report.run.items(name)
    table = _table(f"in each of the {name.replace('_', ' ')}")
    for position, item in enumerate(items, 1):
        label = harmless(str(item.get("id", position)))
        if "count" in item:
            label += f" (x {item['count']:,})"
        table.add_column(label, justify="right", no_wrap=True)
    table.add_column("")
    for formula in formulas:
        values = [words(formula, report.run.value_at(formula.id, item)) for item in items]
        table.add_row(formula.id, *values, Text(formula.title, style="dim"))
    return table


def quantities(report: Report, formulas: list[Formula]) -> Table:
    """Every other quantity with its value."""
    table = _table("quantity")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("")
    for formula in formulas:
        value = words(formula, report[formula.id])
        table.add_row(formula.id, value, Text(formula.title, style="dim"))
    return table


def _table(head: str) -> Table:
    """A table whose rows start with the id under which --derive and the JSON know a quantity."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(head, no_wrap=True)
    return table


def words(formula: Formula, value: Any) -> str:
    """A value with its unit."""
    unit = formula.unit.text
    if unit == "byte":
        return show(value, True)
    plain = unit in ("1", "truth", "text") or isinstance(value, (bool, str))
    return show(value) if plain else f"{show(value)} {unit}"
