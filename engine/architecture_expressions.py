"""Every expression of an architecture file, with its place and the names that it may read."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .composing import GROUPS, PARTS
from .record import record
from .resolver import NUMBERS, WORDS

if TYPE_CHECKING:
    from .yaml_problems import Path

BUILT_IN = ("model_type", "text_type")
ALWAYS = (
    "count",
    "title",
    "tower",
    "places",
)  # what every group has, beside its own fields and the sums
LISTS: Mapping[str, tuple[str, ...]] = {  # a section to the lists that its groups are items of
    "layer_groups": ("layer_groups", "text_groups", "all_groups"),
    "outer": ("outer_groups", "text_groups", "all_groups"),
    "towers": ("tower_groups", "all_groups"),
}


@record
class Placed:
    """An expression at a path of the whole file."""

    path: Path
    text: str
    names: frozenset[str]


def expressions(data: Mapping[str, Any], known: Collection[str]) -> Iterator[Placed]:
    """
    The expressions in the order in which they are evaluated.

    `known` are names from outside: library versions and, for a file whose text part another file
    reads, the fields of that.
    """
    names = {*BUILT_IN, *known, *data.get("constants", {})}
    fields = {**data.get("text", {}).get("fields", {}), **data.get("fields", {})}
    for name, spec in fields.items():
        for key in ("value", "otherwise", "when_null"):
            yield from _one(("fields", name, key), spec.get(key), names)
        for word, text in spec.get("words", {}).items():
            yield from _one(("fields", name, "words", word), text, names)
        names.add(name)
    for index, check in enumerate(data.get("checks", ())):
        yield from _one(("checks", index, "when"), check["when"], names)
    for kind in GROUPS:
        for index, group in enumerate(data.get(kind, ())):
            yield from _group((kind, index), group, set(names))


def block_expressions(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """(path, text) of the expressions of a block by itself."""
    for key in ("defaults", "adds"):
        for name, text in data.get(key, {}).items():
            yield (key, name), str(text)
    for part in PARTS:
        for number, entry in enumerate(data.get(part, ())):
            for key in ("when", *NUMBERS[part]):
                if isinstance(entry.get(key), str):
                    yield (part, number, key), entry[key]


def _one(path: Path, text: Any, names: set[str]) -> Iterator[Placed]:
    if isinstance(text, str):
        yield Placed(path, text, frozenset(names))


def _group(path: Path, group: Mapping[str, Any], names: set[str]) -> Iterator[Placed]:
    for key in ("when", "count"):
        yield from _one((*path, key), group.get(key), names)
    inner = names | ({group["each"]} if "each" in group else set())
    for name, text in group.get("fields", {}).items():
        yield from _one((*path, "fields", name), text, inner)
        inner.add(name)
    inner -= {group["each"]} - names if "each" in group else set()
    for index, entry in enumerate(group["adds"]):
        known = yield from _given(path, entry, inner)
        for name, text in entry["fields"].items():
            yield from _one((*path, "adds", index, name), text, known)
    for part in PARTS:
        for index, entry in enumerate(group[part]):
            known = yield from _given(path, entry, inner)
            for key in ("when", *NUMBERS[part]):
                yield from _one((*path, part, index, key), entry.get(key), known)


def _given(
    path: Path, entry: Mapping[str, Any], names: set[str]
) -> Generator[Placed, None, set[str]]:
    """The expressions around a part of a block; returns the names that the part may read."""
    given = entry.get("given")
    if given is None:
        return names
    place: Path = (*path, "given", given["position"])
    yield from _one((*place, "when"), given["when"], names)
    known = names | set(given["set"])
    for name, text in given["set"].items():
        yield from _one((*place, "set", name), text, names)
    for name, text in given["defaults"].items():
        if name not in known:
            yield from _one((*place, "defaults", name), text, known)
            known = known | {name}
    return known


def listed(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(list path, field) of everything that formulas can read of the groups of a file."""
    for kind, (own, *wider) in LISTS.items():
        for group in data.get(kind, ()):
            always = {*ALWAYS, *data["sums"]}
            for place in (own, *wider):
                for field in always | set(group.get("fields", {})) if place == own else always:
                    yield f"{place}[]", field
                for end in ("first", "last"):
                    yield f"{place}[].spans[]", end
                for part in PARTS:
                    for field in fields_of_part(part):
                        yield f"{place}[].{part}[]", field


def fields_of_part(part: str) -> set[str]:
    """What formulas can read of a module, parameter or cache."""
    found = {"name", "path", *NUMBERS[part], *WORDS[part]}
    return found | {"modules": {"whole"}, "caches": {"windowed"}}.get(part, set())
