"""From what a person types to one card: keys, aliases, names that several sizes share, suggestions.

Names are compared by their letters and digits alone. Files are searched as text first, so that only
those which hold the name are parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .card_reader import read_card
from .cards import Card, normalised
from .errors import InputProblem
from .record import record, replace
from .units import Units
from .yaml_source import read

Files = Mapping[str, tuple[str, bool]]  # card id to (path, from an overlay)

MOST = 6  # names in a suggestion
ALIKE = 0.75  # of 1; one letter or digit of four may differ
_SIZE = re.compile(r"(?<![0-9a-z])(\d+)\s*(?:gb|gib|g)(?![0-9a-z])|(?<=\s)(\d+)$")


@record
class Named:
    """A card file with every name that leads to it."""

    card: Card
    aliases: tuple[str, ...]
    family: tuple[str, ...]
    sizes: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.card.id


class Search:
    """A search for one typed name."""

    def __init__(self, typed: str, files: Files, units: Units) -> None:
        self.typed, self.files, self.units = typed, files, units
        self.texts: dict[str, str] = {}

    def card(self) -> Card:
        """The card meant; raises `InputProblem` with the nearest names."""
        exact, family = self.named(normalised(self.typed))
        if exact:
            return exact[0].card
        if family:
            return noted(self.typed, family)
        rest, size = without_size(self.typed)
        exact, family = self.named(normalised(rest)) if size else ([], [])
        members = [*exact, *family]
        meant = [n for n in members if size in n.sizes]
        if len(meant) == 1:
            return meant[0].card
        raise unknown(self.typed, members or self.near())

    def named(self, wanted: str) -> tuple[list[Named], list[Named]]:
        """The cards whose key or alias this is, and those that share it with other sizes."""
        exact, family = [], []
        for found in self.read(i for i in self.files if wanted and wanted in self.text(i)):
            if wanted in found.aliases:
                exact.append(found)
            elif wanted in found.family:
                family.append(found)
        return exact, family

    def text(self, card_id: str) -> str:
        """A file as one word of letters and digits."""
        if card_id not in self.texts:
            with open(self.files[card_id][0], encoding="utf-8-sig") as handle:
                self.texts[card_id] = normalised(handle.read())
        return self.texts[card_id]

    def read(self, ids: Iterable[str]) -> Iterator[Named]:
        for card_id in ids:
            path, overlay = self.files[card_id]
            source = read(path, path if overlay else f"gpus/{os.path.basename(path)}")
            card = read_card(source, self.units, overlay)
            data = source.data
            own = (normalised(card.id), *names(data, "aliases"))
            yield Named(card, own, names(data, "family"), sizes(data))

    def near(self) -> list[Named]:
        """Cards with a name of which this is a part or the other way round, else the most alike."""
        import difflib

        wanted = normalised(self.typed)
        known: dict[str, list[Named]] = {}
        for found in self.read(self.files):
            for name in (*found.aliases, *found.family):
                known.setdefault(name, []).append(found)
        inside = [name for name in known if len(name) > 2 and name in wanted]
        longest = max(map(len, inside), default=0)
        close = [n for n in known if wanted in n] or [n for n in inside if len(n) == longest]
        if not close:
            close = difflib.get_close_matches(wanted, known, 2 * MOST, ALIKE)
            same = [n for n in close if letters(n) == letters(wanted)]
            close = same or close
        return list({c.id: c for name in close for c in known[name]}.values())


def names(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names under a key of a card file, as they are compared."""
    return tuple(normalised(str(name)) for name in data.get(key, ()))


def sizes(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The memory sizes printed on the box: `24`, or `64` and `16` for four times 16 GB."""
    return tuple(re.findall(r"(\d+) GB", str(data.get("marketed", ""))))


def without_size(typed: str) -> tuple[str, str]:
    """A name without the memory size in it, and that size: `3070 8gb` to `3070` and `8`."""
    text = typed.casefold()
    found = _SIZE.search(text)
    if found is None:
        return text, ""
    return f"{text[: found.start()]} {text[found.end() :]}", found[1] or found[2]


def letters(name: str) -> str:
    return "".join(c for c in name if not c.isdigit())


def noted(typed: str, family: list[Named]) -> Card:
    """The smallest of the cards that share a name, with a note of which it is."""
    first, *others = sorted(family, key=lambda n: (n.card.usable, n.card.total, n.id))
    rest = f"; for another write {' or '.join(n.id for n in others)}" if others else ""
    note = (
        f"'{typed[:60]}' comes in several sizes; the smallest in the database was taken: "
        f"{first.card.title} (--gpu {first.id}){rest}"
    )
    return replace(first.card, note=note)


def unknown(typed: str, near: list[Named]) -> InputProblem:
    """The sentence about a name that no card has."""
    ids = [n.id for n in near]
    hint = f" Did you mean {', '.join(ids)}?" if 0 < len(ids) <= MOST else ""
    return InputProblem(
        f"Unknown GPU '{typed[:60]}'.{hint} --list-gpus prints every name; --vram-mib N "
        "takes any other card.",
        flag="gpu",
    )
