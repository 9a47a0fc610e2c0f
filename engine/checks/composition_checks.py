"""Checks across architecture files, blocks and formulas: all is given, and all is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from .. import expression as ex
from ..architecture import Architecture
from ..architecture_expressions import ALWAYS, LISTS, block_expressions, expressions, listed
from ..checkpoint import facts_of
from ..composing import GROUPS, PARTS
from ..errors import Problem, RuleFileError
from ..formula import Formula, Symbol
from ..loading import changed_families
from ..rules import Rules
from ..suggest import suggest
from ..template import holes
from ..yaml_source import Source

OF_MODEL = ("verified", "counted", "counted_parameters")  # what every model has beside its fields


def whole(architecture: Architecture) -> Mapping[str, Any] | None:
    """A file with what it extends; None where it refuses or cannot be put together."""
    if "refuse" in architecture.own:
        return None
    try:
        return architecture.data
    except (RuleFileError, KeyError, TypeError, AttributeError):
        return None  # reported by others


def check_complete(rules: Rules) -> Iterator[Problem]:
    """F108: a file that claims a config says either why it is refused, or all that is needed."""
    for found in rules.architectures:
        own, source = found.own, found.source
        data = own if "refuse" in own else whole(found)
        if data is None or "matches" not in own:
            continue
        if "refuse" in own:
            fine = not any(key in own for key in ("fields", "extends", "text", *GROUPS))
        else:
            kinds = own["matches"].get("model_type", [])
            known = bool(kinds) and set(kinds) <= set(data.get("verified", ()))
            fine = "text" in data or ("layer_groups" in data and (known or "unverified" in data))
            fine = fine and "fields" in data
        if not fine:
            message = "Write either `refuse`, or `fields`, `layer_groups` and `unverified`."
            yield source.problem("F108", "bad-value", source.mark(), message)


def check_given(rules: Rules) -> Iterator[Problem]:
    """F220: every group of every architecture has the fields that formulas read of its list."""
    wanted: dict[tuple[str, str], tuple[Formula, Symbol]] = {}
    for formula in (*rules.formulas.values(), *(s.formula for s in rules.statuses)):
        for symbol in formula.symbols.values():
            place = symbol.source.rpartition(".")[0]
            wanted.setdefault((place, symbol.field), (formula, symbol))
    files = [(a, data) for a in rules.architectures if (data := whole(a)) is not None]
    every = {pair for _, data in files for pair in listed(data)}
    facts = facts_of(rules.checkpoint)
    for (place, field), (formula, symbol) in wanted.items():
        lacking, having = _lacking(files, place, field, facts)
        if place != "model" and (place, field) not in every:
            continue  # nothing gives it: F212
        source = formula.source
        if len(lacking) > having:
            names = ", ".join(sorted({a.id for a, _ in lacking})[:5])
            message = f"`{symbol.source}` is not given by every architecture: not by {names}."
            yield source.problem("F220", "missing-field", symbol.mark, message)
            continue
        for architecture, path in lacking:
            home, there = architecture.home(path)
            message = f"This gives no `{field}`, which {source.path} reads as `{symbol.source}`."
            yield home.problem("F220", "missing-field", home.mark(there), message)


def _lacking(
    files: Collection[tuple[Architecture, Mapping[str, Any]]],
    place: str,
    field: str,
    facts: Collection[str] = (),
) -> tuple[list[tuple[Architecture, Any]], int]:
    """The groups or files without a field, and how many have it."""
    lacking: list[tuple[Architecture, Any]] = []
    having = 0
    given: list[tuple[Any, bool]]
    for found, data in files:
        if place == "model":
            if "matches" not in found.own or "text" in data:
                continue  # the rest of the fields come from the file of the text part
            given = [(("fields",), field in (*data.get("fields", {}), *OF_MODEL, *facts))]
        else:
            given = [
                ((kind, number), field in (*ALWAYS, *group.get("fields", {}), *data["sums"]))
                for kind, names in LISTS.items()
                for number, group in enumerate(data.get(kind, ()))
                if place.removesuffix("[]") in names
            ]
        having += sum(has for _, has in given)
        lacking += [(found, path) for path, has in given if not has]
    return lacking, having


def check_used(rules: Rules) -> Iterator[Problem]:
    """F206: nothing is said that nothing reads; of an overlay's files where there is one."""
    changed = changed_families(rules.roots)
    for problem in (*unread(rules), *unused_blocks(rules)):
        if not rules.overlays or problem.mark.path in changed:
            yield problem  # an overlay need not mend what it leaves unread in bundled files


def unread(rules: Rules) -> Iterator[Problem]:
    """Fields, constants, sums and group fields that no expression, sentence or formula reads."""
    of_model, of_lists = set[str](), set[str]()
    for formula in (*rules.formulas.values(), *(s.formula for s in rules.statuses)):
        for symbol in formula.symbols.values():
            (of_model if symbol.source.startswith("model.") else of_lists).add(symbol.field)
    files = {a.id: a for a in rules.architectures}
    reads: dict[str, set[str]] = {}
    for found in rules.architectures:
        data = whole(found)
        if data is None:
            continue
        names = names_read(data, rules)
        for name in (*ancestors(files, found), found.id):
            reads.setdefault(name, set()).update(names)
        if "text" in data:
            of_model |= names  # read of a file that is chosen by the config
    for found in rules.architectures:
        used = reads.get(found.id, set()) | of_model
        for name in ancestors(files, found):
            used |= set(files[name].own.get("fields", {}))  # reads another key of the config
        for kind in ("fields", "constants"):
            for name in found.own.get(kind, {}) if found.id in reads else ():
                if name not in used:
                    yield unused(found.source, (kind, name), f"Nothing reads `{name}`.")
        for kind in GROUPS:
            for number, group in enumerate(found.own.get(kind, ())):
                for name in group.get("fields", {}) if found.id in reads else ():
                    if name not in used | of_lists:
                        path = (kind, number, "fields", name)
                        yield unused(found.source, path, f"Nothing reads `{name}`.")
                for name in group.get("adds", {}):
                    if name not in of_lists:
                        path = (kind, number, "adds", name)
                        yield unused(found.source, path, f"No formula reads the sum `{name}`.")
    for block in rules.blocks.values():
        for name in block.data.get("adds", {}):
            if name not in of_lists:
                yield unused(block, ("adds", name), f"No formula reads the sum `{name}`.")


def unused_blocks(rules: Rules) -> Iterator[Problem]:
    """Blocks and abstract files that no file uses, and arguments that their block does not read."""
    reads = {name: block_names(block) for name, block in rules.blocks.items()}
    used, extended = set[str](), set[str]()
    for found in rules.architectures:
        extended.add(str(found.own.get("extends", "")))
        for kind in GROUPS:
            for number, group in enumerate(found.own.get(kind, ())):
                for position, entry in enumerate(group.get("blocks", ())):
                    entry = {"use": entry} if isinstance(entry, str) else entry
                    name = entry["use"]
                    used.add(name)
                    for argument in entry.get("set", {}):
                        if name in reads and argument not in reads[name]:
                            path = (kind, number, "blocks", position, "set", argument)
                            near = suggest(argument, reads[name])
                            says = f"The block `{name}` does not read `{argument}`.{near}"
                            yield unused(found.source, path, says)
    for name, block in rules.blocks.items():
        if name not in used:
            yield unused(block, ("id",), f"No architecture file uses the block `{name}`.")
        for argument in block.data.get("defaults", {}):
            if argument not in reads[name]:
                says = f"`{argument}` has a default here and is never read."
                yield unused(block, ("defaults", argument), says)
    for found in rules.architectures:
        if "matches" not in found.own and found.id not in extended:
            says = f"No file extends `{found.id}`, and it has no `matches` to claim a config."
            yield unused(found.source, ("id",), says)


def unused(source: Source, path: Any, says: str) -> Problem:
    return source.problem("F206", "unused", source.key_mark(path), f"{says} Remove it, or use it.")


def ancestors(files: Mapping[str, Architecture], found: Architecture) -> list[str]:
    """The files that one extends, nearest first."""
    names: list[str] = []
    while "extends" in found.own:
        name = found.own["extends"]
        if name not in files or name in names:
            break
        names.append(name)
        found = files[name]
    return names


def names_read(data: Mapping[str, Any], rules: Rules) -> set[str]:
    """Every name that the expressions and sentences of a whole file read."""
    names: set[str] = set()
    for placed in expressions(data, ()):
        names |= names_of(placed.text)
    for spec in data.get("fields", {}).values():
        names |= holes_of(spec.get("warn", ""))
    for entry in (*data.get("checks", ()), *data.get("remarks", ())):
        for hole in holes_of(entry["says"]):
            names |= {hole} | names_of(hole)
    names |= holes_of(data.get("unverified", {}).get("says", ""))
    for path in data.get("paths", {}).values():
        names |= holes_of(path)
    for kind in GROUPS:
        for group in data.get(kind, ()):
            names |= holes_of_parts(group) | holes_of(group.get("path", ""))
    return names


def block_names(block: Source) -> set[str]:
    """Every name that a block reads: arguments, and fields of the group or file around it."""
    names = holes_of_parts(block.data)
    for _, text in block_expressions(block.data):
        names |= names_of(text)
    return names


def holes_of_parts(holder: Mapping[str, Any]) -> set[str]:
    """The names in the holes of module and parameter names and kinds."""
    texts = [
        str(entry.get(key, ""))
        for part in PARTS
        for entry in holder.get(part, ())
        for key in ("name", "kind", "part", "role")
    ]
    return {name for text in texts for name in holes_of(text)}


def holes_of(text: Any) -> set[str]:
    return {hole for hole, _, _ in holes(str(text))}


def names_of(text: Any) -> frozenset[str]:
    """The names that an expression reads, lists too; none where it cannot be parsed."""
    return _names_of(str(text))


@lru_cache(maxsize=4096)
def _names_of(text: str) -> frozenset[str]:
    """`names_of`: a block has the same expressions in every file that uses it."""
    try:
        tree = ex.parse(text)
    except ex.ExpressionError:
        return frozenset()  # reported where it stands
    loops = {
        loop.source for node in ex.walk(tree) if isinstance(node, ex.Fold) for loop in node.loops
    }
    items = {node.var for node in ex.walk(tree) if isinstance(node, ex.Item)}  # pattern[i]
    return frozenset(ex.names(tree) | loops | items)


COMPOSITION_CHECKS = (check_complete, check_given, check_used)
