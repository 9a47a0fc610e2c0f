"""From the keys of a document to flags, and to what of it is in no estimate."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ..errors import InputProblem
from ..record import record, replace
from .document import Document, Item
from .mapping import COMMAND, Effect, Entry, Importer, matching, text_of

if TYPE_CHECKING:
    from ..flags import FlagSet

NOTHING = ("null", "false", "0", "0.0", "", "[]", "{}", "none", "None")
OPEN = ("${", "{{", "<%")  # what is filled in when the program runs


@record
class Used:
    """A key that set flags; `flags` may be empty where its value is what holds anyway."""

    item: Item
    flags: Mapping[str, Any]


@record
class Unpriced:
    """A key that costs or saves memory which is in no estimate."""

    item: Item
    says: str
    direction: str  # of the error: under, over, either
    settled: str = ""  # flag that a person may give instead
    within: str = ""  # flag at or below whose value nothing of this holds
    absent: int = 0  # what the program takes, for `within`, where no key says so

    def inside(self, flags: Mapping[str, Any]) -> bool:
        """Whether these flags cover it; a switch that is on counts as 1."""
        value = self.absent or self.item.value
        limit = flags.get(self.within)
        return isinstance(value, int) and isinstance(limit, int) and value <= limit


@record
class Imported:
    """
    What a configuration says.

    `flags` are those of its keys, its rules and its program's defaults, `given` those without the
    defaults; `assumed` sentences are said beside the answer, `unknown` are keys that no mapping
    lists and `free` those without cost; `follow` are files that it names, as (key, path).
    """

    importer: Importer
    model: str | None
    model_key: str
    flags: Mapping[str, Any]
    used: tuple[Used, ...]
    unpriced: tuple[Unpriced, ...]
    assumed: tuple[str, ...]
    unknown: tuple[Item, ...]
    free: tuple[Item, ...]
    follow: tuple[tuple[str, str], ...]
    given: frozenset[str]

    @property
    def defaults(self) -> dict[str, Any]:
        """The flags that are the program's own defaults, since no key says otherwise."""
        return {n: v for n, v in self.importer.defaults.items() if n not in self.given}

    def without(self, typed: Mapping[str, Any]) -> Imported:
        """The same without what its flags cover or a person settles, whose own flags win."""
        flags = {**self.flags, **typed}
        kept = (u for u in self.unpriced if u.settled not in typed and not u.inside(flags))
        return replace(self, unpriced=tuple(kept))

    def told(self) -> tuple[str, ...]:
        """What keeps a run from being called safe: what may be too low, and what is not known."""
        title = self.importer.title
        told = [
            f"{u.item.key} of {title} is not priced ({u.says}), so the estimate may be "
            f"{'too low' if u.direction == 'under' else 'off either way'}"
            for u in self.unpriced
            if u.direction != "over"
        ]
        if self.importer.part:
            told.append(
                f"a file of {title} is part of a run: all else is as fitcheck has it by default"
            )
        if self.unknown:
            names = ", ".join(item.key for item in self.unknown)
            told.append(f"{names}: not known here, so whatever {title} does with it is not priced")
        return tuple(told)

    def notes(self) -> tuple[str, ...]:
        """What is said beside the answer and lowers no verdict."""
        title = self.importer.title
        over = [
            f"{u.item.key} of {title} is not priced ({u.says}), so the estimate may be too high"
            for u in self.unpriced
            if u.direction == "over"
        ]
        return (*self.assumed, *over)


class Reading:
    """One document while it is put into flags."""

    def __init__(self, document: Document, importer: Importer, flags: FlagSet) -> None:
        self.document, self.importer, self.known = document, importer, flags
        self.flags: dict[str, Any] = {}
        self.unpriced: list[Unpriced] = []
        self.assumed: list[str] = []
        self.given: set[str] = set()
        self.follow: list[tuple[str, str]] = []
        self.used: list[Used] = []

    def take(self, item: Item, effect: Effect, note: bool = True) -> dict[str, Any]:
        """Apply an effect; returns the flags that it sets, checked. Raises `InputProblem`."""
        value = text_of(item.value)
        if effect.refuse:
            raise self.document.refused(item.key, filled(effect.refuse, value))
        found = {name: self.checked(item, name, given) for name, given in effect.sets.items()}
        if effect.unpriced:
            says = filled(effect.unpriced, value)
            told = (effect.direction, effect.settled, effect.within, effect.value)
            one = Unpriced(item, says, *told)
            self.unpriced += [one] if one not in self.unpriced else []
        if effect.assumes:
            self.assumed.append(filled(effect.assumes, value))
        if effect.follow and isinstance(item.value, str):
            self.follow.append((item.key, item.value))
        self.flags.update(found)
        self.given.update(found)
        return found

    def checked(self, item: Item, name: str, value: Any) -> Any:
        """A flag's value in the form of the flag; what is wrong is said at its place."""
        flag = self.known.flags.get(name)
        if flag is None:
            return value
        if flag.kind == "integer" and isinstance(value, str) and value.strip().isdigit():
            value = int(value)
        if flag.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)
        if flag.kind == "words" and isinstance(value, list):
            value = ",".join(map(str, value))
        if flag.kind == "switch" and str(value).lower() in ("true", "false"):
            value = str(value).lower() == "true"
        try:
            return self.known.check(flag, value)
        except InputProblem as problem:
            says = f"{item.key}: {str(problem).replace(flag.option, 'it', 1)}"
            raise self.document.refused(item.key, says) from None

    def key(self, item: Item, entry: Entry) -> None:
        """One key with its value."""
        value = text_of(item.value)
        if any(sign in value for sign in OPEN):
            says = (
                f"`{item.key}` is filled in when it runs ({value[:40]}): give "
                + (self.known.spelled(entry.flag) if entry.flag else "the option")
                + " instead."
            )
            raise self.document.refused(item.key, says)
        silent = value in entry.unless or value in NOTHING
        effect = matching(entry.values, value)
        found: dict[str, Any] = {}
        if effect is not None:
            found |= self.take(item, effect)
        elif item.value is None:
            pass
        elif entry.others is not None:
            if entry.others.sets or not silent:
                found |= self.take(item, entry.others)
        elif entry.flag:
            given = item.value
            if entry.each:
                words = given if isinstance(given, list) else str(given).split(",")
                given = ",".join(entry.each.get(str(w).strip(), str(w).strip()) for w in words)
            found |= self.take(item, Effect({entry.flag: given}))
        if not silent and effect is None:
            found |= self.take(item, entry.always)
        if entry.flag or found:
            self.used.append(Used(item, found))

    def value(self, key: str) -> str:
        """The value of a key as text, `null` where it is absent."""
        item = self.document.items.get(key)
        return "null" if item is None else text_of(item.value)

    def rules(self) -> None:
        """What several keys decide together."""
        for rule in self.importer.rules:
            if all(self.holds(key, wanted) for key, wanted in rule.when.items()):
                place = next((k for k in rule.when if k in self.document.items), "")
                item = self.document.items.get(place) or Item(" and ".join(rule.when), None, 0, 0)
                found = self.take(item, rule.effect)
                if found:
                    self.decide(item, found)

    def decide(self, item: Item, found: Mapping[str, Any]) -> None:
        """Flags that a rule sets belong to the key by which it holds, and to no other."""
        kept = [
            Used(u.item, {n: v for n, v in u.flags.items() if n not in found}) for u in self.used
        ]
        place = next((n for n, used in enumerate(kept) if used.item is item), None)
        if place is None:
            kept.append(Used(item, found))
        else:
            kept[place] = Used(item, {**kept[place].flags, **found})
        self.used = kept

    def holds(self, key: str, wanted: tuple[str, ...]) -> bool:
        value = self.value(key)
        if "*" in wanted:
            return value not in NOTHING
        return any(fnmatchcase(text, one) for text in (value, value.lower()) for one in wanted)


def filled(text: str, value: str) -> str:
    return text.replace("{value}", value[:80])


def apply(
    document: Document, importer: Importer, flags: FlagSet, beside: Mapping[str, Any] | None = None
) -> Imported:
    """
    Put a document into flags by a mapping; `beside` are the flags of what names it, if any does.

    Raises
    ------
    InputProblem
        A value that its flag cannot have, or one that is not modelled, with its place.
    """
    reading = Reading(document, importer, flags)
    reading.flags.update({**(beside or {}), **importer.defaults})
    unknown, free = [], []
    model, model_key = None, ""
    for key in importer.model:
        value = reading.value(key)
        if value not in NOTHING and model is None:
            model, model_key = matching(importer.model[key], value) or value, key
    parents = {name.rpartition(".")[0] for name in document.items if "." in name}
    for item in document.items.values():
        entry = importer.entry(item.key)
        if item.key in importer.model or (item.key == COMMAND and entry is None):
            continue
        if entry is not None:
            reading.key(item, entry)
            if not entry.flag and (entry.always.free or said_free(entry, item)):
                free.append(item)
        elif importer.is_free(item.key) or covered(importer, item.key):
            free.append(item)
        elif item.key not in parents:
            unknown.append(item)
    reading.rules()
    return Imported(
        importer,
        model,
        model_key,
        reading.flags,
        tuple(u for u in reading.used if u.flags or u.item.value not in (None, False)),
        tuple(reading.unpriced),
        tuple(dict.fromkeys(reading.assumed)),
        tuple(unknown),
        tuple(free),
        tuple(reading.follow),
        frozenset(reading.given),
    )


def said_free(entry: Entry, item: Item) -> bool:
    effect = matching(entry.values, text_of(item.value))
    return effect is not None and bool(effect.free)


def covered(importer: Importer, key: str) -> bool:
    """Whether the mapping speaks of something that the key lies in."""
    parts = key.split(".")
    return any(importer.entry(".".join(parts[:n])) is not None for n in range(1, len(parts)))


def merged(first: Imported, second: Imported) -> Imported:
    """A configuration with a part that it names; where both set a flag the first one wins."""
    return replace(
        first,
        flags={**first.flags, **second.flags, **{n: first.flags[n] for n in first.given}},
        given=first.given | second.given,
        used=(*first.used, *second.used),
        unpriced=(*first.unpriced, *second.unpriced),
        assumed=tuple(dict.fromkeys((*first.assumed, *second.assumed))),
        unknown=(*first.unknown, *second.unknown),
        free=(*first.free, *second.free),
        follow=(*first.follow, *second.follow),
    )
