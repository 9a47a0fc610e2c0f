"""Architecture files put together: what `extends` takes over, and the blocks of their layers.

The result has the form of a file that says everything itself, so the resolver knows neither. Where
a part came from is kept beside it, for messages and derivations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import RuleFileError
from .source_later import head_of
from .suggest import suggest

if TYPE_CHECKING:
    from .yaml_problems import Path
    from .yaml_source import Source

Origins = dict[Any, tuple[Any, Any]]  # path in the whole to (file, path in it)

BY_NAME = ("fields", "constants", "paths")  # an own entry replaces one of the same name
APPENDED = ("checks", "remarks")
TAKEN = (
    "unverified",
    "defaults",
    "layer_groups",
    "outer",
    "towers",
    "text",
)  # taken over where not given
PARTS = ("modules", "parameters", "caches")
GROUPS = ("layer_groups", "outer", "towers")


class Library:
    """The architecture files and blocks by id, to be put together when one is needed."""

    def __init__(
        self,
        files: Mapping[str, Source],
        blocks: Mapping[str, Source],
        names: Callable[[], Collection[str]] = tuple,
        added: Collection[str] = (),
    ) -> None:
        self.files, self.blocks = files, blocks
        self.added = added  # ids of files from overlays
        self.names = names  # of all files, those that could not be read too

    def sums(self) -> set[str]:
        """What a block, or a file of an overlay, adds to its layers; 0 where no part does."""
        found: set[str] = set()
        for block in self.blocks.values():
            found.update(head_of(block).get("adds", ()))
        for name in self.added:
            groups = [g for kind in GROUPS for g in self.files[name].data.get(kind, ())]
            found.update(*(group.get("adds", ()) for group in groups))
        return found

    def data(self, source: Source) -> dict[str, Any]:
        """One file with all that it takes from others; raises `RuleFileError`."""
        return self.compose(source)[0]

    def origins(self, source: Source) -> Origins:
        """Where each part of that came from."""
        return self.compose(source)[1]

    def compose(self, source: Source) -> tuple[dict[str, Any], Origins]:
        """Both at once."""
        chain = self.chain(source)
        data: dict[str, Any] = {}
        origins: Origins = {}
        for each in reversed(chain):  # the most general first
            _merge(data, origins, each)
        parts = [*chain, *self.used(data)]
        for kind in GROUPS:
            if kind in data:
                home = origins.pop((kind,), (source, (kind,)))[0]
                data[kind] = [
                    self.group(home, origins, (kind, index), group)
                    for index, group in enumerate(data[kind])
                ]
        groups = [group for kind in GROUPS for group in data.get(kind, ())]
        own = {name for g in groups for entry in g["adds"] for name in entry["fields"]}
        data["sums"] = sorted(own | self.sums())
        if any(each.data.get("status") != "stable" for each in parts):
            data["status"] = "draft"  # as settled as the least settled of its parts
        return data, origins

    def chain(self, source: Source) -> list[Source]:
        """The file and those it extends, nearest first; raises `RuleFileError`."""
        chain, names = [source], [str(source.data.get("id"))]
        while "extends" in chain[-1].data:
            last, wanted = chain[-1], str(chain[-1].data["extends"])
            place = last.mark(("extends",))
            if wanted in names:
                if wanted != names[0]:
                    raise RuleFileError([])  # the files of the circle say so themselves
                message = f"This file extends itself: {' -> '.join([*names, wanted])}."
                mark = source.mark(("extends",))
                raise RuleFileError([source.problem("F219", "extends-itself", mark, message)])
            if wanted not in self.files:
                if wanted in self.names():
                    raise RuleFileError([])  # it could not be read, which was reported
                message = f"There is no architecture file `{wanted}`.{suggest(wanted, self.files)}"
                raise RuleFileError([last.problem("F219", "unknown-file", place, message)])
            chain.append(self.files[wanted])
            names.append(wanted)
        return chain

    def used(self, data: Mapping[str, Any]) -> list[Source]:
        """The blocks that the groups of a file name."""
        entries = [e for kind in GROUPS for g in data.get(kind, ()) for e in g.get("blocks", ())]
        names = {entry if isinstance(entry, str) else entry["use"] for entry in entries}
        return [self.blocks[name] for name in names if name in self.blocks]

    def group(self, home: Source, origins: Origins, path: Path, group: Any) -> dict[str, Any]:
        """A group of layers with its blocks written out."""
        origins[path] = (home, path)

        def said(place: Path, file: Source, there: Path) -> None:
            origins[place] = (file, there)

        whole = {k: v for k, v in group.items() if k not in (*PARTS, "blocks", "adds")}
        parts: dict[str, list[Any]] = {kind: [] for kind in PARTS}
        adds: list[Any] = []
        for position, entry in enumerate(group.get("blocks", ())):
            where: Path = (*path, "blocks", position)
            entry = {"use": entry} if isinstance(entry, str) else entry
            block = self.block(home, where, entry["use"])
            given = {
                "when": entry.get("when", "true"),
                "set": entry.get("set", {}),
                "defaults": block.data.get("defaults", {}),
                "position": position,
            }
            said((*path, "given", position), home, where)
            said((*path, "given", position, "defaults"), block, ("defaults",))
            place = entry.get("at", block.data.get("at", ""))
            for kind in PARTS:
                for number, part in enumerate(block.data.get(kind, ())):
                    made = dict(part)
                    if place and kind != "caches":
                        made["name"] = f"{place}.{part['name']}"
                    made["given"] = given
                    said((*path, kind, len(parts[kind])), block, (kind, number))
                    parts[kind].append(made)
            if "adds" in block.data:
                said((*path, "adds", len(adds)), block, ("adds",))
                adds.append({"fields": block.data["adds"], "given": given})
        for kind in PARTS:
            for number, part in enumerate(group.get(kind, ())):
                said((*path, kind, len(parts[kind])), home, (*path, kind, number))
                parts[kind].append(part)
        if "adds" in group:
            said((*path, "adds", len(adds)), home, (*path, "adds"))
            adds.append({"fields": group["adds"]})
        return {**whole, **parts, "adds": adds}

    def block(self, home: Source, where: Path, name: str) -> Source:
        """The file of a block; raises `RuleFileError`."""
        if name not in self.blocks:
            if name in self.names():
                raise RuleFileError([])  # it could not be read, which was reported
            message = f"There is no block `{name}`.{suggest(str(name), self.blocks)}"
            raise RuleFileError([home.problem("F219", "unknown-file", home.mark(where), message)])
        return self.blocks[name]


def _merge(data: dict[str, Any], origins: Origins, source: Source) -> None:
    """Put one file over what the files that it extends have said."""
    for key, value in source.data.items():
        if key in BY_NAME:
            data[key] = {**data.get(key, {}), **value}
            origins.update({(key, name): (source, (key, name)) for name in value})
        elif key in APPENDED:
            before = data.get(key, [])
            for number in range(len(value)):
                origins[(key, len(before) + number)] = (source, (key, number))
            data[key] = [*before, *value]
        else:
            if key in TAKEN:
                origins[(key,)] = (source, (key,))
            data[key] = value
    for key in list(data):
        if key not in (*BY_NAME, *APPENDED, *TAKEN) and key not in source.data:
            del data[key]  # what a file is, it says itself


def home_of(origins: Origins, source: Any, path: Sequence[Any]) -> tuple[Any, Any]:
    """The file that said what stands at a path of the whole, and the path there."""
    for length in range(len(path), 0, -1):
        found = origins.get(tuple(path[:length]))
        if found is not None:
            return found[0], (*found[1], *path[length:])
    return source, tuple(path)
