"""The modules that a wheel holds say what the rule files say."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fitcheck.engine import api
from fitcheck.engine.cards import all_cards, find_card
from fitcheck.engine.codegen import MODULES, digest, of_mode, write_modules
from fitcheck.engine.errors import FitcheckError
from fitcheck.engine.loading import load_rules
from fitcheck.engine.modes import commands, modes_of
from fitcheck.engine.paths import bundled_root
from fitcheck.engine.report import Report, build_report
from fitcheck.engine.rules import Rules
from fitcheck.engine.sources.catalogue import Catalogue


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """The generated modules, imported as parts of fitcheck.engine."""
    folder = tmp_path_factory.mktemp("generated")
    found = {}
    for path in write_modules(str(folder)):
        name = f"fitcheck.engine.{Path(path).stem}_under_test"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        found[Path(path).name] = module
    assert set(found) > set(MODULES)
    yield found
    for module in found.values():
        del sys.modules[module.__name__]


@pytest.fixture(scope="module")
def compiled(modules: dict[str, ModuleType]) -> Rules:
    rules: Rules = modules["_compiled.py"].rules(bundled_root())
    return rules


MODELS = [
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen2.5-0.5B",
    "google/gemma-2-9b",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    {"model_type": "new", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
     "vocab_size": 32000},
]  # fmt: skip
RUNS: list[dict[str, Any]] = [
    {},
    {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True},
    {"lora": False, "optimizer": "adam8bit"},
    {"lora": False, "precision": "fp32", "optimizer": "sgd"},
    {"quant": "int8", "seq_len": 4096},
    {"quant": "nf4", "double_quant": True, "precision": "fp16", "grad_checkpoint": True,
     "seq_len": 1024},
    {"precision": "fp16", "grad_checkpoint": True, "seq_len": 8192, "lora_targets": "full"},
    {"lora_targets": "q,nothing"},
    {"quant": "nf4", "lora": False},
]  # fmt: skip


def outcome(rules: Rules, model: Any, gpu: str, flags: dict[str, Any]) -> Any:
    """The whole JSON, or the sentence of the refusal."""
    try:
        prepared = api.prepare(rules, model, gpu=gpu, vram_mib=None, source="auto", flags=flags)
        report: Report = build_report(prepared)
        return json.loads(json.dumps(report.to_dict())), report.explain()
    except FitcheckError as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("gpu", ["4090", "t4", "mi300x"])
@pytest.mark.parametrize("flags", RUNS, ids=lambda f: "-".join(map(str, f)) or "default")
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m if isinstance(m, str) else "unknown")
def test_both_give_one_answer(compiled: Rules, model: Any, flags: dict[str, Any], gpu: str) -> None:
    assert outcome(compiled, model, gpu, flags) == outcome(load_rules(), model, gpu, flags)


SERVED: list[dict[str, Any]] = [
    {},
    {"quant": "nf4", "double_quant": True, "seq_len": 8192, "concurrent": 8},
    {"quant": "int8", "precision": "fp32", "num_concurrent": 3},
    {"quant": "none", "double_quant": True},
]


@pytest.fixture(scope="module", params=modes_of([(bundled_root(), False)]))
def compiled_mode(request: pytest.FixtureRequest, modules: dict[str, ModuleType]) -> Rules:
    rules: Rules = modules[f"{of_mode(request.param)}.py"].rules(bundled_root())
    return rules


@pytest.mark.parametrize("flags", SERVED, ids=lambda f: "-".join(map(str, f)) or "default")
@pytest.mark.parametrize("model", [*MODELS, "google/gemma-3-27b-it"], ids=str)
def test_both_give_one_answer_in_a_mode(
    compiled_mode: Rules, model: Any, flags: dict[str, Any]
) -> None:
    assert compiled_mode.mode is not None
    before = dict(compiled_mode.functions)
    read = load_rules(mode=compiled_mode.mode.id)
    assert outcome(compiled_mode, model, "t4", flags) == outcome(read, model, "t4", flags)
    assert compiled_mode.functions == before  # nothing had to be parsed


def test_the_subcommands_of_modes(modules: dict[str, ModuleType]) -> None:
    assert commands([(bundled_root(), False)]) == modules["_compiled_modes.py"].COMMANDS


def test_every_expression_is_compiled(compiled: Rules) -> None:
    before = dict(compiled.functions)
    for flags in RUNS:
        outcome(compiled, "meta-llama/Llama-3.1-8B", "t4", flags)
    assert compiled.functions == before  # nothing had to be parsed


def test_derivations_are_the_same(compiled: Rules) -> None:
    flags = {"qlora": True, "batch_size": 2}
    texts = []
    for rules in (compiled, load_rules()):
        prepared = api.prepare(
            rules, "meta-llama/Llama-3.1-8B", gpu="t4", vram_mib=None, source="auto", flags=flags
        )
        texts.append(build_report(prepared).derive())
    assert texts[0] == texts[1]


def test_cards(modules: dict[str, ModuleType]) -> None:
    module, rules = modules["_compiled_cards.py"], load_rules()
    folders = rules.folders("gpus")
    cards = {card.id: card for card in all_cards(folders, rules.units)}
    assert set(module.CARDS) == set(cards)
    for name, card_id in module.NAMES.items():
        assert find_card(name, folders, rules.units).id == card_id
    for card_id, make in module.CARDS.items():
        assert make().facts() == cards[card_id].facts()
        assert make().evidence.keys() == cards[card_id].evidence.keys()


def test_models(modules: dict[str, ModuleType]) -> None:
    module, catalogue = modules["_compiled_models.py"], Catalogue.bundled()
    entries = {entry.file: entry for entry in catalogue.entries()}
    assert set(module.ENTRIES) == set(entries)
    for file, values in module.ENTRIES.items():
        assert type(entries[file])(*values) == entries[file]
    for name, file in module.NAMES.items():
        found = catalogue.find(name)
        assert found is not None and found.file == file


def test_the_digest_names_the_files_it_was_made_from(modules: dict[str, ModuleType]) -> None:
    assert digest(bundled_root()) == modules["_compiled.py"].DIGEST
