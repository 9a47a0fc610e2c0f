"""The engine names no component: rules under other names give the same numbers.

Every id of the bundled rules (quantities, flags, their values, cards, phases, profiles, statuses,
architectures) gets a prefix, by edits of the YAML text at the places where ids stand. What a file
chooses for itself (symbols, constants, cases) and the published JSON keys stay.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import fitcheck.engine
from fitcheck.engine.advisor import advise
from fitcheck.engine.architecture import resolve
from fitcheck.engine.architecture_expressions import fields_of_part
from fitcheck.engine.cards import cards_of, find_card
from fitcheck.engine.checks import check_roots
from fitcheck.engine.comparing import compare
from fitcheck.engine.composing import PARTS
from fitcheck.engine.hints import price_hints, propose
from fitcheck.engine.loading import NO_PROFILES, SPECIAL, Loader, bundled_root, profile_kinds
from fitcheck.engine.optimizing import optimize
from fitcheck.engine.report import Prepared, Report, build_report
from fitcheck.engine.rules import Rules

PREFIX = "zz_"
BUNDLED = Path(bundled_root())
CARDS = ("t4", "4090")
ENGINE = Path(fitcheck.engine.__file__ or "").parent
SCHEMAS = ENGINE / "schemas"

KINDS = profile_kinds([(str(BUNDLED), False)])
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
QUOTED = re.compile(r"""(["'])([\w .+-]+)\1""")


def stems(folder: str) -> set[str]:
    return {p.stem for p in (BUNDLED / folder).glob("*.yaml")}


FLAGS = yaml.safe_load((BUNDLED / "formulas/flags.yaml").read_text(encoding="utf-8"))
QUANTITIES = stems("formulas") - set(SPECIAL)
FLAG_IDS = {*FLAGS["flags"], *FLAGS["shorthands"]}
LIBRARIES = {name for name, flag in FLAGS["flags"].items() if flag.get("type") == "version"}
PHASES = set(
    yaml.safe_load((BUNDLED / "formulas/phases.yaml").read_text(encoding="utf-8"))["phases"]
)


def chosen_words() -> set[str]:
    """Values of choice flags, and the words that profiles and quantities choose from."""
    words = {str(v) for flag in FLAGS["flags"].values() for v in flag.get("values", {})}
    for file in (BUNDLED / "formulas").glob("*.yaml"):
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        for owner in (data, *data.get("symbols", {}).values()):
            words |= {w for w in owner.get("oneof", ()) if isinstance(w, str)}
    return words


WORDS = chosen_words()


# --- the transformation ---------------------------------------------------------------------------

Edit = Callable[[str], str]
Path_ = tuple[Any, ...]


def in_names(names: set[str]) -> Edit:
    """Renames the names among these, and leaves every other word."""
    return lambda text: re.sub(
        r"(?<![\w-])[\w-]+", lambda m: PREFIX + m[0] if m[0] in names else m[0], text
    )


def in_expression(names: set[str]) -> Edit:
    """Names as they are, and quoted words that are values or phases."""

    def edit(text: str) -> str:
        parts, end = [], 0
        for match in QUOTED.finditer(text):
            parts.append(in_names(names)(text[end : match.start()]))
            word = match[2]
            known = word in WORDS or word in PHASES
            parts.append(f"{match[1]}{PREFIX if known else ''}{word}{match[1]}")
            end = match.end()
        return "".join([*parts, in_names(names)(text[end:])])

    return edit


def in_holes(names: set[str]) -> Edit:
    return lambda text: re.sub(r"\{[^{}]+\}", lambda m: in_expression(names)(m[0]), text)


def scalars(node: yaml.Node, path: Path_ = ()) -> Iterator[tuple[Path_, bool, yaml.ScalarNode]]:
    """Every scalar with its path and whether it is a key."""
    if isinstance(node, yaml.ScalarNode):
        yield path, False, node
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from scalars(item, (*path, index))
    elif isinstance(node, yaml.MappingNode):
        for key, item in node.value:
            yield (*path, key.value), True, key
            yield from scalars(item, (*path, key.value))


def renamed(text: str, rule: Callable[[Path_, bool], Edit | None]) -> str:
    """The text with an edit applied to each scalar that the rule has one for."""
    root = yaml.compose(text)
    assert root is not None
    for path, is_key, node in reversed(list(scalars(root))):
        edit = rule(path, is_key)
        if edit is not None:
            start, end = node.start_mark.index, node.end_mark.index
            text = text[:start] + edit(text[start:end]) + text[end:]
    return text


def formula_rule(data: dict[str, Any]) -> Callable[[Path_, bool], Edit | None]:
    """Where ids stand in a formula or status file."""
    local = {*data.get("reads", ()), *data.get("flags", ())}
    words = in_names(WORDS | PHASES)

    def rule(path: Path_, is_key: bool) -> Edit | None:
        first, last = path[0], path[-1]
        if is_key:
            if first == "excludes":
                return in_names(QUANTITIES)
            if (first == "examples" and len(path) > 3) or "no_direction" in path[:-1]:
                return in_names(local)
            return words if first == "tables" and "cells" in path[:-1] else None
        if first == "id" or (
            first in ("reads", "band", "search") and last in ("of", 0, *range(40))
        ):
            return in_names(QUANTITIES | stems("profiles/statuses"))
        if first == "flags" or "axes" in path or path == ("search", "largest"):
            return in_names(FLAG_IDS)
        if last in ("when", "expr", "within", "while"):
            return in_expression(local if last != "within" else FLAG_IDS)
        if last == "says" and first in ("cases", "limits", "because"):
            return in_holes(local)
        if last == "from":
            return lambda text: re.sub(
                r"(flags|profiles)\.(\w+)", lambda m: f"{m[1]}.{PREFIX}{m[2]}", text
            )
        if first == "claims" and "no_direction" not in path:
            return in_names(local)
        if "oneof" in path or first == "live" or (first == "examples" and last != "name"):
            return words
        return None

    return rule


def flags_rule(path: Path_, is_key: bool) -> Edit | None:
    last = path[-1]
    if is_key:
        named = (len(path) == 2 and path[0] in ("flags", "shorthands")) or "sets" in path[:-1]
        return in_names(FLAG_IDS if named else WORDS if "values" in path[:-1] else set())
    if path[0] == "default_card":
        return in_names(set(CARDS))
    if last in ("null_without", "id") or {"given", "yields"} & {*path}:
        return in_names(FLAG_IDS)
    if last == "default" or "sets" in path:
        return in_names(WORDS)
    if last == "when":
        return in_expression(FLAG_IDS)
    return in_holes(FLAG_IDS) if last == "says" else None


def hints_rule(path: Path_, is_key: bool) -> Edit | None:
    if is_key:
        return in_names(FLAG_IDS) if "change" in path[:-1] else None
    shown = path[0] == "compare" and path[-1] != "label"
    if shown or path[-1] == "when" or path[0] in ("price", "fits") or "change" in path:
        return lambda text: in_names(WORDS)(in_expression(FLAG_IDS | QUANTITIES)(text))
    return None


def advise_rule(path: Path_, is_key: bool) -> Edit | None:
    if is_key:
        return in_names(FLAG_IDS) if "change" in path[:-1] or path[0] == "held" else None
    if path[0] in ("price", "fits", "splits") or "change" in path:
        return in_expression(FLAG_IDS | QUANTITIES)
    if path[0] in ("axes", "objectives", "ceilings", "prices"):
        named = path[-1] in ("flag", "search", "value", "when")
        return in_expression(FLAG_IDS | QUANTITIES) if named else None
    return None


def profile_rule(path: Path_, is_key: bool) -> Edit | None:
    if is_key:
        return in_names(FLAG_IDS) if path[0] == "matches" else None
    if path == ("id",):
        return lambda text: PREFIX + text
    if path[0] == "matches":
        return in_names(WORDS | set(CARDS))
    if path[-1] == "within":
        return in_expression(FLAG_IDS)
    return in_names(WORDS) if path[0] == "values" and len(path) == 2 else None


def phases_rule(path: Path_, is_key: bool) -> Edit | None:
    return in_names(PHASES) if is_key and len(path) == 2 else None


def architecture_rule(path: Path_, is_key: bool) -> Edit | None:
    """Ids of architectures and blocks, and the library versions that expressions read."""
    last = path[-1]
    if is_key and path[0] == "absent" and len(path) == 3:
        return in_names(FLAG_IDS)
    if is_key or path[0] in ("title", "status", "matches", "verified", "absent", "evidence"):
        return None
    if path == ("id",):
        return identity_rule(path, is_key)
    if last in ("extends", "use") or path[-2:-1] == ("blocks",):
        return lambda text: PREFIX + text
    if last in ("says", "warn"):
        return in_holes(LIBRARIES)
    spoken = {"meaning", "name", "kind", "part", "role", "from", "at", "each", "type", "tower"}
    return None if spoken.intersection(path) else in_names(LIBRARIES)


def identity_rule(path: Path_, is_key: bool) -> Edit | None:
    """Only the id, of a file whose other words are the model's or the maker's."""
    if path != ("id",) or is_key:
        return None
    return lambda text: f'"{PREFIX}{text.strip(chr(34))}"'


def plots_rule(path: Path_, is_key: bool) -> Edit | None:
    named = path[-1] in ("quantity", "low", "high", "longest", "flag")
    return in_names(FLAG_IDS | QUANTITIES) if named and not is_key else None


RULES = {
    "plots": plots_rule,
    "flags": flags_rule,
    "advise": advise_rule,
    "hints": hints_rule,
    "phases": phases_rule,
}


@pytest.fixture(scope="module")
def renamed_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("renamed")

    def put(source: Path, target: str, rule: Callable[[Path_, bool], Edit | None]) -> None:
        file = root / target
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(renamed(source.read_text(encoding="utf-8"), rule), encoding="utf-8")

    for source in sorted((BUNDLED / "formulas").glob("*.yaml")):
        if source.stem in SPECIAL:
            rule = RULES.get(source.stem, lambda path, is_key: None)
            put(source, f"formulas/{source.name}", rule)
        else:
            rule = formula_rule(yaml.safe_load(source.read_text(encoding="utf-8")))
            put(source, f"formulas/{PREFIX}{source.name}", rule)
    for kind in KINDS:
        for source in (BUNDLED / "profiles" / kind).glob("*.yaml"):
            put(source, f"profiles/{PREFIX}{kind}/{PREFIX}{source.name}", profile_rule)
    for source in (BUNDLED / "profiles/statuses").glob("*.yaml"):
        rule = formula_rule(yaml.safe_load(source.read_text(encoding="utf-8")))
        put(source, f"profiles/statuses/{PREFIX}{source.name}", rule)
    for folder in ("architectures", "blocks"):
        for source in (BUNDLED / "profiles" / folder).glob("*.yaml"):
            put(source, f"profiles/{folder}/{PREFIX}{source.name}", architecture_rule)
    for card in CARDS:
        put(BUNDLED / f"gpus/{card}.yaml", f"gpus/{PREFIX}{card}.yaml", identity_rule)
    return root


# --- the same numbers -----------------------------------------------------------------------------

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4_096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
}
QWEN = {
    "model_type": "qwen2",
    "hidden_size": 3_584,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18_944,
    "vocab_size": 152_064,
}
GOLDEN = {
    "quant": "nf4",
    "grad_checkpoint": True,
    "lora_r": 64,
    "batch_size": 4,
    "seq_len": 2_048,
    "flash_attn": True,
}
SCOPE = {
    "quant": "nf4",
    "precision": "fp16",
    "grad_checkpoint": True,
    "lora_r": 16,
    "seq_len": 1_024,
    "flash_attn": True,
}
FULL = {"lora": False, "optimizer": "sgd-momentum", "batch_size": 2}
RUNS = [
    pytest.param((LLAMA, "4090", GOLDEN), id="the golden configuration"),
    pytest.param((QWEN, "t4", SCOPE), id="inside the scope of the reserve of a T4"),
    pytest.param((LLAMA, "t4", {**SCOPE, "flash_attn": False}), id="eager attention on a T4"),
    pytest.param((LLAMA, "4090", FULL), id="a full fine-tune"),
]


@lru_cache
def loaded(root: Path) -> Rules:
    return Loader([(str(root), False)]).load()


def report(root: Path, config: dict[str, Any], card: str, flags: dict[str, Any]) -> Report:
    rules = loaded(root)
    model = resolve(rules.architectures, "probe", config, "a test", None, stack=rules.stack)
    found = find_card(card, rules.folders("gpus"), rules.units)
    return build_report(Prepared(rules, rules.flags.resolve(flags), found, model))


def with_prefix(flags: dict[str, Any]) -> dict[str, Any]:
    return {PREFIX + n: PREFIX + v if v in WORDS else v for n, v in flags.items()}


@pytest.fixture(params=RUNS, scope="module")
def both(request: pytest.FixtureRequest, renamed_root: Path) -> tuple[Report, Report]:
    """One run under the bundled rules, and under the same rules with other names."""
    config, card, flags = request.param
    return (
        report(BUNDLED, config, card, flags),
        report(renamed_root, config, PREFIX + card, with_prefix(flags)),
    )


def old_names(text: str) -> str:
    return text.replace(PREFIX, "")


def test_the_renamed_rules_have_no_problem(renamed_root: Path) -> None:
    problems = check_roots([(str(renamed_root), False)])
    assert problems == (), "\n\n".join(p.render() for p in problems[:5])


def test_every_id_is_renamed(renamed_root: Path) -> None:
    before, after = loaded(BUNDLED), loaded(renamed_root)
    kinds: list[Callable[[Rules], list[str]]] = [
        lambda r: [f.id for f in r.formulas.values()],
        lambda r: list(r.flags.flags),
        lambda r: [v for f in r.flags.flags.values() for v in f.values],
        lambda r: list(r.phases),
        lambda r: [s.id for s in r.statuses],
        lambda r: [a.id for a in r.architectures],
        lambda r: list(r.blocks),
        lambda r: list(r.profiles),
        lambda r: [p.id for ps in r.profiles.values() for p in ps],
    ]
    for ids in kinds:
        assert ids(after) == [PREFIX + name for name in ids(before)]


def test_the_same_bytes(both: tuple[Report, Report]) -> None:
    before, after = both
    assert {old_names(name): after[name] for name in after if not isinstance(after[name], str)} == {
        name: before[name] for name in before if not isinstance(before[name], str)
    }
    assert [c.bytes for c in after.components] == [c.bytes for c in before.components]
    assert list(after.phases.values()) == list(before.phases.values())


def test_the_same_verdict(both: tuple[Report, Report]) -> None:
    before, after = both
    assert after.status == PREFIX + before.status
    for name in ("title", "exit_code", "safe", "style", "reasons", "unsettled"):
        assert getattr(after, name) == getattr(before, name), name


def test_the_same_json(both: tuple[Report, Report]) -> None:
    before, after = (json.dumps(r.to_dict()) for r in both)
    assert json.loads(old_names(after)) == json.loads(before)


def test_the_same_hints_and_proposal(both: tuple[Report, Report]) -> None:
    before, after = both
    assert [h.text for h in price_hints(after.prepared)] == [
        h.text for h in price_hints(before.prepared)
    ]
    first, second = (propose(r.prepared) for r in both)
    assert (first and (first.total, first.says)) == (second and (second.total, second.says))


def test_the_same_comparison_and_optimum(both: tuple[Report, Report]) -> None:
    renamed = {card.title for card in cards_of(both[1].prepared.rules)}

    def lines(report: Report) -> list[tuple[object, ...]]:
        cards = [c for c in cards_of(report.prepared.rules) if c.title in renamed]
        found = compare(report.prepared, cards)
        return [(c.headroom, c.capacity, c.total, c.high, c.most, c.title) for c in found]

    def steps(report: Report) -> list[list[tuple[int, str]]]:
        return [[(s.total, s.title) for s in each] for each in optimize(report.prepared).steps]

    before, after = both
    assert len(renamed) > 1 and lines(after) == lines(before)
    assert steps(after) == steps(before)


def test_the_same_sweep(renamed_root: Path) -> None:
    def swept(root: Path, prefix: str) -> str:
        flags = {"quant": "nf4", "flash_attn": True}
        given = with_prefix(flags) if prefix else flags
        sweep = {f"{prefix}grad_checkpoint": [True, False], "gpu": [f"{prefix}{c}" for c in CARDS]}
        lists = {"seq_lens": "512,2048", "batch_sizes": [1, 2, 4]}
        return json.dumps(advise(loaded(root), LLAMA, {**given, **lists}, sweep).to_dict())

    before, after = swept(BUNDLED, ""), old_names(swept(renamed_root, PREFIX))
    assert json.loads(before)["fitting_count"] > 0
    assert json.loads(after) == json.loads(before)


def test_the_same_derivation(both: tuple[Report, Report]) -> None:
    def words(text: str) -> list[str]:
        # Longer names are padded differently, and what stands after them moves to the right.
        return sorted(re.sub(r"(:\d+):\d+", r"\1", old_names(text)).split())

    before, after = both
    assert words(after.derive()) == words(before.derive())


# --- no id in the code ----------------------------------------------------------------------------


def schema_keys(value: Any) -> set[str]:
    """The words of the rule files' own grammar, which the engine may know."""
    if isinstance(value, list):
        return set().union(*map(schema_keys, value))
    if not isinstance(value, dict):
        return set()
    found = set(value["properties"]) if isinstance(value.get("properties"), dict) else set()
    return found.union(*(schema_keys(v) for v in value.values()))


GRAMMAR = set().union(
    *(schema_keys(json.loads(f.read_text(encoding="utf-8"))) for f in SCHEMAS.glob("*.json")),
    *map(fields_of_part, PARTS),  # what formulas may read of every module, parameter or cache
)


@lru_cache
def rule_ids() -> set[str]:
    """Ids that no code may know: components, cards, optimizers, architectures, statuses."""
    components = {
        p.stem
        for p in (BUNDLED / "formulas").glob("*.yaml")
        if "live" in (yaml.safe_load(p.read_text(encoding="utf-8")) or {})
    }
    optimizers = set(FLAGS["flags"]["optimizer"]["values"])
    others = [stems(f"profiles/{folder}") for folder in NO_PROFILES if folder != "models"]
    return components.union(optimizers, stems("gpus"), *others) - GRAMMAR


def docstrings(tree: ast.AST) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(id(body[0].value))
    return found


def said_words(node: ast.AST) -> list[str]:
    """The words of a literal, and an identifier with its parts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.findall(r"[\w-]+", node.value)
    kinds = (
        ast.Name,
        ast.Attribute,
        ast.arg,
        ast.keyword,
        ast.alias,
        ast.FunctionDef,
        ast.ClassDef,
    )
    fields = ("id", "attr", "arg", "name") if isinstance(node, kinds) else ()
    names = (getattr(node, field, None) for field in fields)
    return [part for name in names if isinstance(name, str) for part in (name, *name.split("_"))]


def test_the_ids_are_those_of_the_files() -> None:
    assert rule_ids() >= {"weights", "overhead", "4090", "adamw", "does_not_fit", "llama"}
    assert "safe" in GRAMMAR  # a field of a status file, as well as the id of one


@pytest.mark.parametrize(
    "file", sorted(ENGINE.rglob("*.py")), ids=lambda p: str(p.relative_to(ENGINE))
)
def test_no_module_of_the_engine_knows_an_id(file: Path) -> None:
    tree, ids = ast.parse(file.read_text(encoding="utf-8")), rule_ids()
    comments = docstrings(tree)
    found = [
        f"{file.name}:{getattr(node, 'lineno', '?')}: {word}"
        for node in ast.walk(tree)
        if id(node) not in comments
        for word in said_words(node)
        if word in ids
    ]
    assert not found
