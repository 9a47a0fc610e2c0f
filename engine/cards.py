"""GPU cards: find one file by key or alias, without parsing the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .errors import InputProblem, Mark
from .paths import rule_files
from .record import record, replace

if TYPE_CHECKING:
    from .formula import Evidence
    from .rules import Rules
    from .units import Units

NO_EVIDENCE: Mapping[str, tuple[Evidence, ...]] = MappingProxyType({})


FACTS = ("id", "total", "usable", "listed", "here", "free", "display")  # beside the fields
FIELDS = ("vendor", "class", "architecture", "compute_capability")
UNKNOWN = "unknown"  # what a card that is known by its memory alone has in these


@record(identity=True)
class Card:
    """
    One GPU.

    `total` is what the driver reports and `usable` what a process can count on, both in bytes; a
    card given by its memory alone is not `listed` and states no usable figure. `note` says which
    card was taken where the name left a choice.
    """

    id: str
    title: str
    status: str
    fields: Mapping[str, Any]
    total: int
    usable: int
    listed: bool
    evidence: Mapping[str, tuple[Evidence, ...]] = NO_EVIDENCE
    mark: Mark | None = None
    overlay: bool = False
    note: str = ""
    free: int = 0  # bytes that are free now, of a card of this machine
    display: str = "none"  # what takes of them beside the run
    here: Mapping[str, Any] = MappingProxyType({})  # what the machine says of it; empty elsewhere

    def facts(self) -> dict[str, Any]:
        """What formulas and profiles may read of a card."""
        return {
            **dict.fromkeys(FIELDS, UNKNOWN),
            **self.fields,
            "id": self.id,
            "total": self.total,
            "usable": self.usable,
            "listed": self.listed,
            "here": bool(self.here),
            "free": self.free,
            "display": self.display,
        }


def normalised(name: str) -> str:
    """Letters and digits only, without case: `RTX 4090` and `rtx-4090` are one name."""
    return "".join(c for c in name.casefold() if c.isalnum())


def custom_card(vram_mib: int) -> Card:
    """A card known only by its memory, in MiB."""
    if isinstance(vram_mib, bool) or not isinstance(vram_mib, int) or not 1 <= vram_mib <= 2**30:
        raise InputProblem(
            f"--vram-mib has to be a whole number of MiB from 1 to {2**30:,}, not {vram_mib!r}.",
            flag="vram_mib",
        )
    return Card("custom", f"{vram_mib:,} MiB card", "stable", {}, vram_mib << 20, 0, False)


def with_memory(card: Card, vram_mib: int) -> Card:
    """A listed card with another memory, of which the usual share is usable."""
    custom = custom_card(vram_mib)
    title = f"{card.title} with {vram_mib:,} MiB"
    return replace(
        card, title=title, total=custom.total, usable=0, listed=False, evidence={}, note=""
    )


def card_files(folders: Sequence[tuple[str, bool]]) -> dict[str, tuple[str, bool]]:
    """Card id to (path, from an overlay), a later folder replacing an earlier one by id."""
    files: dict[str, tuple[str, bool]] = {}
    for folder, overlay in folders:
        for card_id, path in rule_files(folder):
            files[card_id] = (path, overlay)
    return files


def find_card(name: str, folders: Sequence[tuple[str, bool]], units: Units) -> Card:
    """
    The card with this key or alias; of several sizes that share a name the smallest, with a note.

    Raises
    ------
    InputProblem
        No card has the name; the nearest names and `--vram-mib` are suggested.
    """
    files, wanted = card_files(folders), normalised(name)
    if not wanted:
        raise InputProblem("--gpu needs the name of a card.", flag="gpu")
    direct = [i for i in files if normalised(i) == wanted]
    if direct:
        return _load([files[direct[0]]], units)[0]
    from .card_names import Search

    return Search(name, files, units).card()


def _shown(path: str, overlay: bool) -> str:
    return path if overlay else f"gpus/{os.path.basename(path)}"


def _load(files: Iterable[tuple[str, bool]], units: Units) -> list[Card]:
    from .card_reader import read_card
    from .data_cache import read_source, save_caches

    found = [
        read_card(read_source(path, _shown(path, overlay), overlay), units, overlay)
        for path, overlay in files
    ]
    save_caches()
    return found


def all_cards(folders: Sequence[tuple[str, bool]], units: Units) -> list[Card]:
    """Every card, by id."""
    return _load([found for _, found in sorted(card_files(folders).items())], units)


def cards_of(rules: Rules) -> list[Card]:
    """Every card that rules know, by id; a wheel has them without reading a file."""
    if not rules.overlays and (made := compiled()) is not None:
        return [make() for _, make in sorted(made.CARDS.items())]
    return all_cards(rules.folders("gpus"), rules.units)


def compiled_card(name: str) -> Card | None:
    """A card from the generated module of a wheel, where the name means just one."""
    made = compiled()
    card_id = made and made.NAMES.get(normalised(name))
    return made.CARDS[card_id]() if card_id else None


def compiled() -> Any:
    """The module with the cards that a wheel is built with; None in a checkout."""
    try:
        from . import _compiled_cards  # type: ignore[attr-defined]
    except ImportError:
        return None
    return _compiled_cards
