"""What the rule files of a checkout say, kept between runs: plain data, nothing that executes.

Parsing YAML is a third of an answer from a checkout. One JSON file in the user's cache folder holds
the data of each bundled file for as long as its size, times and inode stay what they were; places
and texts are read from the file itself when somebody asks for them. `FITCHECK_NO_CACHE=1` does
without.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from .source_later import SourceLater

if TYPE_CHECKING:
    from .yaml_source import Source

REFUSED = "FITCHECK_NO_CACHE"  # the environment variable
LATER = ("architectures", "blocks", "models")  # folders of which a run needs a few files
HEAD = ("status", "matches", "refuse", "adds")  # what a run needs of each file there
MARK = "\0"  # opens an exact fraction; no rule file may hold the character


def cache_of(folder: str) -> DataCache | None:
    """The cache of a bundled data folder, None where this user wants none."""
    if os.environ.get(REFUSED):
        return None
    if folder not in _used:
        _used[folder] = DataCache(folder)
    return _used[folder]


def kept_sources(folder: str, said: str) -> list[tuple[str, Source]] | None:
    """
    (stem, file) of a bundled folder, by name, in one pass; None where a file is new or has changed.
    """
    cache = cache_of(folder)
    if cache is None or not os.path.isdir(folder):
        return None
    found: list[tuple[str, Source]] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            stem, dot, ending = entry.name.rpartition(".")
            if not dot or ending not in ("yaml", "yml"):
                continue
            kept = cache.files.get(entry.path)
            if kept is None or kept[0] != stamped(entry.stat()):
                return None
            found.append((stem, cache.kept(entry.path, f"{said}/{entry.name}", kept)))
    return found


_used: dict[str, DataCache] = {}  # folder to its cache, for this process


def read_source(path: str, said: str, fresh: bool) -> Source:
    """One rule file, parsed if `fresh`, else from the cache; raises `RuleFileError`."""
    cache = None if fresh else cache_of(os.path.dirname(path))
    if cache is not None:
        return cache.source(path, said)
    from .yaml_source import read

    return read(path, said)


def save_caches() -> None:
    """Write what this process has read for the first time."""
    for cache in _used.values():
        cache.save()


class DataCache:
    """The data of the files of one folder."""

    def __init__(self, folder: str) -> None:
        self.path = file_for(folder)
        self.changed = False
        self.later = os.path.basename(folder) in LATER
        self.files: dict[str, Any] = {}
        stored = load(self.path)
        if isinstance(stored, dict) and stored.get("reader") == _reader():
            self.files = dict(stored.get("files", {}))

    def source(self, path: str, said: str) -> Source:
        """The file with its data from here, else read and kept; raises `RuleFileError`."""

        def parse() -> Any:
            from .yaml_source import read

            return read(path, said).data

        return SourceLater(said, self.data(path, parse), path)  # type: ignore[return-value]

    def kept(self, path: str, said: str, entry: list[Any]) -> Source:
        """A file that has not changed since it was kept; of most folders it is decoded later."""
        head = entry[3] if self.later else None
        return SourceLater(said, None, path, head, partial(self.decoded, entry))  # type: ignore[return-value]

    def decoded(self, entry: list[Any]) -> Any:
        data = json.loads(entry[2]) if self.later else entry[2]
        return _decoded(data) if entry[1] else data

    def data(self, path: str, parse: Callable[[], Any]) -> Any:
        """What a file says, from here or from `parse()`, which is then kept."""
        now = stamp(path)
        entry = self.files.get(path)
        if entry is not None and entry[0] == now:
            return self.decoded(entry)
        found = parse()
        stored, exact = _encoded(found)
        if now == stamp(path):  # nobody wrote to it in between
            if self.later:
                head = {k: stored[k] for k in HEAD if k in stored} if type(stored) is dict else {}
                stored = [json.dumps(stored, separators=(",", ":")), head]
            else:
                stored = [stored]
            self.files[path] = [now, exact, *stored]
            self.changed = True
        return found

    def save(self) -> None:
        """Write what is new; where that is not possible the next run reads again."""
        if not self.changed:
            return
        there = {path: entry for path, entry in self.files.items() if os.path.exists(path)}
        if store(self.path, {"reader": _reader(), "files": there}):
            self.changed = False


def file_for(place: str) -> str:
    """The file of the user's cache folder that belongs to a folder of this installation."""
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    home = home or os.path.join(os.path.expanduser("~"), ".cache")
    place = os.path.abspath(place)
    code = zlib.crc32(place.encode("utf-8", "replace"))
    return os.path.join(home, "fitcheck", f"{os.path.basename(place)}-{code:08x}.json")


def load(path: str) -> Any:
    """What a file of the cache holds; None where there is none or it cannot be read."""
    try:
        with open(path, encoding="utf-8") as handle:
            return json.load(handle)
    except (OSError, ValueError, RecursionError):
        return None


def store(path: str, data: Any) -> bool:
    """Write a file of the cache in one step; False where that is not possible."""
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(draft, "w", encoding="utf-8") as handle:
            json.dump(data, handle, separators=(",", ":"))
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        return False
    return True


def _reader() -> list[int]:
    """The stamp of what makes data of text; another reader may read differently."""
    folder = os.path.dirname(os.path.abspath(__file__))
    return [
        number
        for name in ("yaml_source.py", "yaml_problems.py", "data_cache.py")
        for number in stamp(os.path.join(folder, name))
    ]


def stamp(path: str) -> list[int]:
    """What changes whenever a file does; empty where there is none."""
    try:
        return stamped(os.stat(path))
    except OSError:
        return []


def stamped(found: os.stat_result) -> list[int]:
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _encoded(data: Any) -> tuple[Any, bool]:
    """(data as JSON has it, whether it holds a fraction)."""
    if isinstance(data, Fraction):
        return f"{MARK}{data}", True
    if isinstance(data, dict):
        pairs = {key: _encoded(value) for key, value in data.items()}
        return {k: v for k, (v, _) in pairs.items()}, any(exact for _, exact in pairs.values())
    if isinstance(data, list):
        items = [_encoded(value) for value in data]
        return [v for v, _ in items], any(exact for _, exact in items)
    return data, False


def _decoded(data: Any) -> Any:
    if type(data) is str:
        return Fraction(data[1:]) if data[:1] == MARK else data
    if type(data) is dict:
        return {key: _decoded(value) for key, value in data.items()}
    if type(data) is list:
        return [_decoded(value) for value in data]
    return data
