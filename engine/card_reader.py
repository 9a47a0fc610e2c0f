"""From a parsed file of gpus/ to a `Card`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cards import FIELDS, Card
from .errors import RuleFileError
from .formula import Evidence
from .formula_reader import FormulaReader
from .units import Units

if TYPE_CHECKING:
    from .yaml_source import Source

MIN_BYTES, MAX_BYTES = 1 << 26, 1 << 44


def read_card(source: Source, units: Units, overlay: bool = False) -> Card:
    """Read one card file; raises `RuleFileError`."""
    reader, data = FormulaReader(source, units, overlay), source.data
    proofs = {n: reader.proof(n, e) for n, e in data.get("evidence", {}).items()}
    amounts: dict[str, int] = {}
    grounds: dict[str, tuple[Evidence, ...]] = {}
    for name in ("total", "usable"):
        entry = data["memory"][name]
        value, _ = reader.amount(("memory", name, "value"), entry["value"])
        amounts[name] = int(value)
        grounds[name] = tuple(proofs[e] for e in entry.get("evidence", ()) if e in proofs)
        if not MIN_BYTES <= value <= MAX_BYTES:
            reader.note("F705", "card-memory", ("memory", name), "A card has 64 MiB to 16 TiB.")
    reader.finish()
    if amounts["usable"] > amounts["total"]:
        mark = source.mark(("memory", "usable"))
        raise RuleFileError(
            [
                source.problem(
                    "F705", "usable-above-total", mark, "The usable memory is more than the total."
                )
            ]
        )
    kept = {n: data[n] for n in (*FIELDS, "regional") if n in data}
    return Card(
        str(data["id"]),
        str(data["title"]),
        str(data.get("status", "draft")),
        kept,
        amounts["total"],
        amounts["usable"],
        True,
        grounds,
        source.mark(("memory",)),
        overlay,
    )
