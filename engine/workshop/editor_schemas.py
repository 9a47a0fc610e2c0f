"""
JSON Schemas for editors, made from those that lint uses.

An editor gets three things more: the words that exist (flags, phases, units, quantities, cards) as
completions, a sentence on each field, and numbers in the spelling of the rule files: `1_024` is a
number for fitcheck and a text for an editor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..architecture_expressions import LISTS, listed
from ..cards import FACTS, FIELDS
from ..loading import files_of
from ..rules import Rules
from ..yaml_source import read
from .written import MADE

CHANGING = ("hints", "levers", "recommend")  # parts of the hints file that change flags
_HERE = os.path.dirname(os.path.abspath(__file__))
_SCHEMAS = os.path.join(os.path.dirname(_HERE), "schemas")
_SAID = os.path.join(_HERE, "fields.yaml")
_SHARED = "formula.json#/$defs/"
_NUMBER = r"^-?[0-9][0-9_]*(\.[0-9]+)?$"


def editor_schemas(rules: Rules) -> dict[str, str]:
    """Every schema as the text of its file, by kind."""
    raw = {name.removesuffix(".json"): _load(name) for name in sorted(os.listdir(_SCHEMAS))}
    words, said = vocabulary(rules), read(_SAID, "engine/workshop/fields.yaml").data["fields"]
    made = {}
    for kind, schema in raw.items():
        alone = standalone(schema, raw["formula"]["$defs"])
        for path, text in said.get(kind, {}).items():
            for part in places(alone, path.split(".")):
                part["description"] = text
        for path, known in words.get(kind, {}).items():
            for part in places(alone, path.split(".")):
                complete(part, known)
        whole = {"$comment": MADE, **spelled(alone)}
        made[kind] = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    return made


def _load(name: str) -> Any:
    with open(os.path.join(_SCHEMAS, name), encoding="utf-8") as handle:
        return json.load(handle)


def standalone(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with its own copy of the definitions that it takes from formula.json."""
    text = json.dumps(schema).replace(_SHARED, "#/$defs/")
    found: dict[str, Any] = json.loads(text)
    own = found.setdefault("$defs", {})
    while missing := {n for n in references(found) if n not in own}:
        for name in sorted(missing):
            own[name] = json.loads(json.dumps(shared[name]))
    if not own:
        del found["$defs"]
    return found


def references(schema: Any) -> Iterator[str]:
    """The names of the definitions a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def places(schema: dict[str, Any], path: Sequence[str]) -> list[dict[str, Any]]:
    """
    The schemas of a field: `symbols.*.from` goes through a key, any value, and a key of that.

    A definition that several fields share is changed for all of them. Raises KeyError where the
    schema has no such field, so that neither side can lose it unnoticed.
    """
    found, root = schema, schema
    for step in path:
        if "$ref" in found:
            found = root["$defs"][found["$ref"].rpartition("/")[2]]
        if "properties" not in found:  # of several forms, the one with keys
            found = next((o for o in found.get("oneOf", ()) if "properties" in o), found)
        if step == "*":
            found = found["items"] if "items" in found else found["additionalProperties"]
        else:
            found = found["properties"][step]
    if "$ref" in found:
        found = root["$defs"][found["$ref"].rpartition("/")[2]]
    return [found]


def complete(schema: dict[str, Any], words: Any) -> None:
    """Offer words without refusing others, which an overlay may add; for an object, as its keys."""
    if isinstance(words, Mapping):
        schema["properties"] = {**schema.get("properties", {}), **words}
        return
    target = schema["items"] if schema.get("type") == "array" else schema
    said = target.pop("description", None)
    inner = dict(target)
    target.clear()
    if said is not None:
        target["description"] = said
    target["anyOf"] = [{"enum": list(words)}, inner]


def spelled(schema: Any) -> Any:
    """The schema with every number also as the text that an editor makes of `1_024`."""
    if isinstance(schema, list):
        return [spelled(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: spelled(value) for key, value in schema.items()}
    kinds = found.get("type")
    if kinds in ("integer", "number"):
        return {**found, "type": [kinds, "string"], "pattern": _NUMBER}
    return found


def vocabulary(rules: Rules) -> dict[str, dict[str, Any]]:
    """Kind to field to the words that can stand there."""
    flags = rules.flags.flags
    quantities = sorted(rules.formulas)
    inputs = sorted({*quantities, *symbols(rules)})
    units = sorted(units_of(rules))
    cards = sorted(files_of(rules.roots, "gpus"))
    groups = dict.fromkeys(name for names in LISTS.values() for name in names)
    lists = [*groups, "phases", "components", *rules.lists]
    blocks = list(rules.blocks)
    proofs = {"evidence.*.cards": cards}
    drawn = {f"plots.*.{key}.quantity": quantities for key in ("curves.*", "limit", "marks.*")}
    named = {"symbols.*.from": sources(rules), "symbols.*.unit": units}
    return {
        "formula": {
            "unit": units,
            "per": lists,
            "live": [*rules.phases, "always"],
            "flags": list(flags),
            "reads": quantities,
            "constants.*.unit": units,
            "tables.*.unit": units,
            "tables.*.axes": [f.id for f in flags.values() if f.domain],
            "search.largest": [f.id for f in flags.values() if f.kind == "integer"],
            "band.of": quantities,
            "claims.rises_with": inputs,
            "claims.falls_with": inputs,
            **named,
            **proofs,
        },
        "status": {"flags": list(flags), "reads": quantities, **named, **proofs},
        "profile": {"matches": match_keys(rules, cards), **proofs},
        "card": proofs,
        "mode": {
            "reads": quantities,
            "fit": quantities,
            **drawn,
        },
        "plots": drawn,
        "architecture": {
            "extends": [a.id for a in rules.architectures if "refuse" not in a.own],
            "layer_groups.*.blocks.*.use": blocks,
            "layer_groups.*.blocks.*": blocks,
        },
        "flags": {"flags.*.group": list(rules.flags.groups), "default_card": cards},
        "advise": {
            "price": quantities,
            "fits": quantities,
            "axes.*.flag": list(flags),
            "splits": list(flags),
            "ceilings.*.search": quantities,
            **{f"{part}.*.change": {name: {} for name in flags} for part in ("ceilings", "prices")},
        },
        "hints": {
            **{f"{part}.*.change": {name: {} for name in flags} for part in CHANGING},
            **{f"compare.{name}": quantities for name in ("high", "headroom")},
            **{f"compare.{name}.quantity": quantities for name in ("capacity", "most")},
        },
    }


def symbols(rules: Rules) -> Iterable[str]:
    return (name for f in rules.formulas.values() for name in f.symbols)


def units_of(rules: Rules) -> Iterable[str]:
    """Units that the files use, and the declared ones."""
    yield from ("1", "truth", "text", *rules.units.dimensions, *rules.units.labels)
    for formula in rules.formulas.values():
        yield formula.unit.text
        yield from (c.unit.text for c in formula.constants.values())
        yield from (t.unit.text for t in formula.tables.values())


def sources(rules: Rules) -> list[str]:
    """Where a symbol can come from."""
    found = {s.source for f in rules.formulas.values() for s in f.symbols.values()}
    found |= {f"flags.{name}" for name in rules.flags.flags}
    found |= {f"card.{name}" for name in (*FIELDS, *FACTS)}
    for kind, profiles in rules.profiles.items():
        found |= {f"profiles.{kind}.{name}" for p in profiles for name in p.values}
    for each in rules.architectures:
        data = each.own if "refuse" in each.own else each.data
        found |= {f"model.{name}" for name in data.get("fields", {})}
        found |= {f"{place}.{name}" for place, name in listed(data)} if "sums" in data else set()
    return sorted(found)


def match_keys(rules: Rules, cards: Sequence[str]) -> dict[str, Any]:
    """The keys of `matches`, each with its values where they are few."""
    keys: dict[str, Any] = {"card": {"anyOf": [{"enum": list(cards)}, {"type": "array"}]}}
    keys |= {f"card.{name}": {} for name in FIELDS}
    for flag in rules.flags.flags.values():
        others = [mode.flags.flags.get(flag.id) for mode in rules.modes.values()]
        domains = [f.domain for f in (flag, *others) if f is not None and f.domain]
        values = tuple(dict.fromkeys(value for domain in domains for value in domain))
        keys[flag.id] = (
            {"anyOf": [{"enum": list(values)}, {"type": "array"}], "description": flag.help}
            if values
            else {"description": flag.help}
        )
    return keys
