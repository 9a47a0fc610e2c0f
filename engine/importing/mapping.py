"""What a file of `profiles/importers/` says of the keys of one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import RuleFileError
from ..record import record

if TYPE_CHECKING:
    from ..yaml_source import Source

FOLDER = "profiles/importers"
COMMAND = "(command)"  # the key under which a document has the words that start its program
Found = TypeVar("Found")


@record
class Effect:
    """
    What a value means: flags that it sets, and what is to be said of it.

    `direction` is that of the error of an estimate without what `unpriced` names: under, over or
    either. All texts are empty where there is nothing to say.
    """

    sets: Mapping[str, Any]
    unpriced: str = ""
    direction: str = ""
    refuse: str = ""
    assumes: str = ""
    free: str = ""
    follow: bool = False
    within: str = ""  # flag at or below whose value nothing of this holds
    value: int = 0  # what the program takes, for `within`, where no key says so
    settled: str = ""  # flag that a person may give instead


@record
class Entry:
    """One key: the flag that takes its value, meanings of single values, and of all others."""

    flag: str
    values: Mapping[str, Effect]
    others: Effect | None  # None: passed on to the flag
    each: Mapping[str, str]
    always: Effect  # what holds beside, at any value but those of `unless`
    unless: tuple[str, ...]


@record
class Rule:
    """What several keys decide together."""

    when: Mapping[str, tuple[str, ...]]
    effect: Effect


@record(identity=True)
class Importer:
    """A whole file."""

    id: str
    title: str
    status: str
    part: bool
    all: tuple[str, ...]
    any: tuple[str, ...]
    none: tuple[str, ...]
    commands: tuple[str, ...]
    files: tuple[str, ...]
    absent: str  # what is said of a file of `files` that is not there
    options: Mapping[str, str]
    model: Mapping[str, Mapping[str, str]]
    defaults: Mapping[str, Any]
    keys: Mapping[str, Entry]
    rules: tuple[Rule, ...]
    free: tuple[str, ...]
    source: Source
    overlay: bool

    def entry(self, key: str) -> Entry | None:
        """What is said of a key, by its name or a pattern."""
        found = self.keys.get(key)
        if found is not None:
            return found
        return next((e for n, e in self.keys.items() if "*" in n and fnmatchcase(key, n)), None)

    def is_free(self, key: str) -> bool:
        """Whether a key, or what it lies in, costs no memory."""
        parts = key.split(".")
        names = [".".join(parts[: n + 1]) for n in range(len(parts))]
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.free)


def matching(table: Mapping[str, Found], value: str) -> Found | None:
    """What a table of values says of one: the value itself, in small letters, or a pattern."""
    for key in (value, value.lower()):
        if key in table:
            return table[key]
    return next((v for n, v in table.items() if "*" in n and fnmatchcase(value, n)), None)


def text_of(value: Any) -> str:
    """A value as mappings write it: true, null, 16, adamw_torch."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()


def read_mapping(source: Source, overlay: bool, base: Importer | None = None) -> Importer:
    """The records of a parsed file over what it extends; KeyError or TypeError otherwise."""
    data = source.data
    found = data.get("recognise", {})
    raw = {str(k): v for k, v in data.get("keys", {}).items()}
    keys = dict(base.keys) if base else {}
    keys |= {k: read_entry(v) for k, v in raw.items() if "like" not in v}
    keys |= {k: keys[str(v["like"])] for k, v in raw.items() if "like" in v}
    rules = [
        Rule({k: texts(v) for k, v in r["when"].items()}, read_effect(r))
        for r in data.get("rules", ())
    ]
    return Importer(
        str(data["id"]),
        str(data["title"]),
        str(data["status"]),
        bool(data.get("part", False)),
        tuple(found.get("all", ())),
        tuple(found.get("any", ())),
        tuple(found.get("none", ())),
        tuple(data.get("commands", ())),
        tuple(data.get("files", base.files if base else ())),
        str(data.get("absent", base.absent if base else "")),
        {**(base.options if base else {}), **data.get("options", {})},
        {k: dict(v or {}) for k, v in data.get("model", {}).items()}
        or (base.model if base else {}),
        {**(base.defaults if base else {}), **data.get("defaults", {})},
        keys,
        tuple(rules),
        (*data.get("free", ()), *(base.free if base else ())),
        source,
        overlay,
    )


def texts(value: Any) -> tuple[str, ...]:
    return tuple(map(text_of, value if isinstance(value, list) else [value]))


def read_entry(entry: Mapping[str, Any]) -> Entry:
    flag = str(entry.get("sets", ""))
    values = {text_of(k): one_value(flag, v) for k, v in entry.get("values", {}).items()}
    others = entry.get("others", "pass" if flag and "values" not in entry else None)
    always = {k: v for k, v in entry.items() if k not in ("sets", "values", "others", "each")}
    return Entry(
        flag,
        values,
        None if others == "pass" else read_effect(others or {}),
        dict(entry.get("each", {})),
        read_effect(always),
        tuple(map(text_of, entry.get("unless", ()))),
    )


def one_value(flag: str, value: Any) -> Effect:
    """An effect, or the value of the entry's flag; null says nothing."""
    if isinstance(value, Mapping):
        return read_effect(value, flag)
    return Effect({} if value is None else {flag: value})


def read_effect(entry: Mapping[str, Any], flag: str = "") -> Effect:
    sets = entry.get("sets", {})
    if not isinstance(sets, Mapping):
        sets = {flag: sets}
    return Effect(
        dict(sets),
        str(entry.get("unpriced", "")),
        str(entry.get("direction", "")),
        str(entry.get("refuse", "")),
        str(entry.get("assumes", "")),
        str(entry.get("free", "")),
        bool(entry.get("follow", False)),
        str(entry.get("within", "")),
        int(entry.get("value", 0)),
        str(entry.get("settled", "")),
    )


def mappings(overlays: Sequence[str] = ()) -> dict[str, Importer]:
    """Every mapping by its id, those of overlay folders too; raises `RuleFileError`."""
    from ..loading import roots_of

    return mappings_of(roots_of(overlays))


def mappings_of(roots: Sequence[tuple[str, bool]]) -> dict[str, Importer]:
    """The mappings of these folders of rules, a later one over an earlier one."""
    from ..data_cache import read_source
    from ..loading import files_of

    files = {
        stem: (read_source(path, said, overlay), overlay)
        for stem, (path, said, overlay) in files_of(roots, FOLDER).items()
    }
    return {stem: extended(files, stem, ()) for stem in files}


def extended(
    files: Mapping[str, tuple[Source, bool]], stem: str, chain: tuple[str, ...]
) -> Importer:
    """A file with all that it extends; raises `RuleFileError` for a name that leads nowhere."""
    source, overlay = files[stem]
    above = source.data.get("extends")
    if above is None:
        return read_mapping(source, overlay)
    if above not in files or above in (*chain, stem):
        what = "extends itself" if above in files else "is no importer"
        problem = source.problem(
            "F201", "unknown-symbol", source.mark(("extends",)), f"`{above}` {what}."
        )
        raise RuleFileError([problem])
    return read_mapping(source, overlay, extended(files, above, (*chain, stem)))
