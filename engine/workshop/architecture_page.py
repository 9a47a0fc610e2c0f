"""The page of an architecture file: what it says itself, and links to what it takes from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..architecture import Architecture
from ..architecture_expressions import LISTS
from ..config_fields import TEXT, TOP
from ..rules import Rules
from .block_page import evidence
from .book import DIRECTIONS, Book
from .formula_page import nested
from .group_page import filled, groups, word
from .markdown import code, link, page, plain, section, sentence, table
from .profile_page import readers_of

PLACES = {TOP: "the file itself", TEXT: "the text part"}
ABSTRACT = "None by itself: other files extend it."


def architecture_page(book: Book, found: Architecture) -> str:
    """One architecture file: which config.json it claims, and what it makes of it or why not."""
    here, own = f"profiles/architectures/{found.id}.md", found.own
    draft = "" if found.status == "stable" else f"a {plain(found.status)}, "
    lines = [
        f"# {plain(str(own.get('title', found.id)))}",
        "",
        f"{code(found.id)}, {draft}from "
        f"{book.file(here, found.source.mark(), found.overlay)}: how a {code('config.json')} "
        "is read.",
        "",
        *section("Which models", claims(own)),
        *section("Extends", extends(book, here, found)),
        *section("Refused", caveat(own.get("refuse"))),
        *section("Checked for", verified(own.get("verified", ()))),
        *section("Without a class", classless(own.get("absent", {}))),
        *section("Where its modules stand", places(own.get("paths", {}))),
        *section("Any other model_type", caveat(own.get("unverified"))),
        *section("Text part", text_part(own.get("text"))),
        *section("What is read of it", fields(own.get("fields", {}))),
        *section("Computed", computed(own.get("fields", {}))),
        *section("Said where the class's own number stands in", defaults(own.get("defaults"))),
        *section("Constants", constants(own.get("constants", {}))),
        *section("Remarks", remarks(own.get("remarks", ()))),
        *section("Refused after reading", checks(own.get("checks", ()))),
        *section("Layers", groups(here, own.get("layer_groups", ()))),
        *section("Outside the layers", groups(here, own.get("outer", ()))),
        *section("Towers", groups(here, own.get("towers", ()))),
        *section("Evidence", evidence(here, own.get("evidence", {}))),
        *section("Extended by", extended_by(book.rules, here, found.id)),
        *section(
            "Read by", read_by(book, here) if "fields" in own and "extends" not in own else []
        ),
    ]
    return page(lines)


def claims(own: Mapping[str, Any]) -> list[str]:
    """Which config.json a file claims."""
    if "matches" not in own:
        return [ABSTRACT, ""]
    wanted = [(code(k), code(nested(v))) for k, v in own["matches"].items()]
    return table(("condition", "has to be"), wanted) or ["Any that no other file claims.", ""]


def extends(book: Book, here: str, found: Architecture) -> list[str]:
    """The files whose fields, checks and layers are taken over where this one has none."""
    files, rows = {a.id: a for a in book.rules.architectures}, []
    seen = {found.id}
    while (name := str(found.own.get("extends", ""))) in files and name not in seen:
        seen.add(name)
        found = files[name]
        rows.append(
            (
                link(here, f"profiles/architectures/{name}.md", code(name)),
                plain(str(found.own.get("title", ""))),
            )
        )
    said = "Everything that is not said here is taken over from the first of these that says it."
    return [said, "", *table(("file", ""), rows)] if rows else []


def extended_by(rules: Rules, here: str, name: str) -> list[str]:
    files = [a.id for a in rules.architectures if a.own.get("extends") == name]
    shown = [link(here, f"profiles/architectures/{i}.md", code(i)) for i in files]
    return [", ".join(shown), ""] if shown else []


def caveat(entry: Mapping[str, Any] | None) -> list[str]:
    if not entry:
        return []
    return [f"{sentence(str(entry['says']))} ({DIRECTIONS[entry['direction']]})", ""]


def verified(names: Sequence[Any]) -> list[str]:
    return [", ".join(code(str(name)) for name in names), ""] if names else []


def text_part(entry: Mapping[str, Any] | None) -> list[str]:
    """Where the text dimensions are nested, and who reads them."""
    if not entry:
        return []
    places = " or ".join(PLACES.get(str(p), code(str(p))) for p in entry["at"])
    default = entry.get("model_type")
    other = f"; where it has none, {code(str(default))} is taken" if default else ""
    said = f"The text part is read from {places} by the file that claims its `model_type`{other}."
    return [said, "", *fields(entry.get("fields", {}))]


def fields(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The fields that are read under a key."""
    rows = [
        (
            code(name),
            keys(entry),
            kind(entry),
            absent(entry),
            word(entry, "when_null"),
            sentence(str(entry["meaning"])),
        )
        for name, entry in entries.items()
        if "from" in entry
    ]
    heads = ("field", "key of config.json", "type", "where it is absent", "where it is null")
    return filled((*heads, "meaning"), rows)


def keys(entry: Mapping[str, Any]) -> str:
    """The keys of a field and the objects they are looked for in."""
    shown = " or ".join(code(str(key)) for key in entry["from"])
    where = [str(place) for place in entry.get("at", ())]
    return f"{shown} in {' or '.join(PLACES.get(p, code(p)) for p in where)}" if where else shown


def kind(entry: Mapping[str, Any]) -> str:
    """The type of a field with its bounds and its words."""
    found, low, high = str(entry["type"]), entry.get("min"), entry.get("max")
    found += f" of {entry['items']}" if "items" in entry else ""
    found += f", {nested(low)} to {nested(high)}" if low is not None else ""
    found += ", of a list the first" if "of_list" in entry else ""
    said = entry.get("words", {})
    return found + "".join(f"; {code(name)} stands for {word(said, name)}" for name in said)


def absent(entry: Mapping[str, Any]) -> str:
    if entry["type"] == "presence":
        return "false"
    return word(entry, "otherwise") or "refused"


def computed(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The fields that follow from others."""
    rows = [
        (code(name), word(entry, "value"), sentence(str(entry["meaning"])))
        for name, entry in entries.items()
        if "value" in entry
    ]
    return table(("field", "is", "meaning"), rows)


def classless(entries: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The model types that some versions of a library have no class of."""
    rows = [
        (code(kind), ", ".join(code(f"{library}{bounds}") for library, bounds in found.items()))
        for kind, found in entries.items()
    ]
    return table(("model_type", "in"), rows)


def places(entries: Mapping[str, str]) -> list[str]:
    """The paths of the stacks of layers, and of what stands around them."""
    rows = [(code(kind), code(path)) for kind, path in entries.items() if path]
    return table(("modules of", "below"), rows)


def constants(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [(code(n), nested(e["value"]), sentence(str(e["meaning"]))) for n, e in entries.items()]
    return table(("constant", "value", "meaning"), rows)


def defaults(said: Mapping[str, Any] | None) -> list[str]:
    """What is said of absent sizes, and which fields are sizes."""
    if not said:
        return []
    return [sentence(said["says"]), "", ", ".join(code(n) for n in said["of"]) + ".", ""]


def remarks(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            ", ".join(code(str(key)) for key in entry["any_key"]),
            DIRECTIONS[entry["direction"]],
            sentence(str(entry["says"])),
        )
        for entry in entries
    ]
    return table(("config.json has", "direction", "what is said"), rows)


def checks(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [(code(str(entry["when"])), sentence(str(entry["says"]))) for entry in entries]
    return table(("when", "what is said"), rows)


def read_by(book: Book, here: str) -> list[str]:
    """The quantities that read fields of models, or of their layers and parts."""
    lists = {f"{name}[]" for names in LISTS.values() for name in names}
    used = readers_of(book.rules, ("model.", *sorted(lists)))
    return [", ".join(book.named(here, name) for name in used), ""] if used else []
