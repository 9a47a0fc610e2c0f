"""The bundled model catalogue: each file is well formed and its numbers hold together.

Where the sibling folder ``shared`` is present, configs and counts are also compared with the ones
collected there.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import estimate
from fitcheck.engine.api import rules_for
from fitcheck.engine.architecture import choose
from fitcheck.engine.config_fields import text_part

REPO = Path(__file__).resolve().parents[1]
CATALOGUE = REPO / "profiles" / "models"
SHARED = REPO.parent / "shared" / "configs"

Model = dict[str, Any]
Config = dict[str, Any]

TOP_KEYS = {"id", "title", "status", "hub_id", "aliases", "parameters", "config", "evidence"}
SHOWN = {"max_position_embeddings", "torch_dtype", "dtype"}  # facts that carry no memory
# Types whose parameters are added up once more here, by hand; the others are held against the class
# that transformers builds (test_architecture_counts.py).
BY_HAND = {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "smollm3",
           "seed_oss", "olmo2", "olmo3", "granite", "exaone4", "hunyuan_v1_dense"}  # fmt: skip
# config.json of these leaves the flag out and the class ties the output head to the embedding.
TIED_WHEN_ABSENT = {"gemma", "gemma2", "gemma3_text"}


def load(path: Path) -> Model:
    loaded: Model = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


PATHS = sorted(CATALOGUE.glob("*.yaml"))
MODELS = {path.stem: load(path) for path in PATHS}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


def head_dim(config: Config) -> int:
    declared = config.get("head_dim")
    if declared:
        return int(declared)
    assert config["hidden_size"] % config["num_attention_heads"] == 0
    return int(config["hidden_size"] // config["num_attention_heads"])


def plain_count(config: Config) -> int:
    """Parameters of a Llama-shaped model: embeddings, projections, two norms a layer, no biases."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    tied = config.get("tie_word_embeddings", config["model_type"] in TIED_WHEN_ABSENT)
    heads = config["num_attention_heads"] + config["num_key_value_heads"]
    layer = 2 * hidden * heads * head_dim(config) + 3 * hidden * config["intermediate_size"]
    tables = config["vocab_size"] * hidden * (1 if tied else 2)
    return int(tables + layers * (layer + 2 * hidden) + hidden)


def extras(config: Config) -> int:
    """What the class of a model type has beyond :func:`plain_count`: biases and further norms."""
    kind, hidden, width = config["model_type"], config["hidden_size"], head_dim(config)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    per_layer = 0
    if kind in ("qwen2", "seed_oss"):  # q, k and v biases
        per_layer += (heads + 2 * kv_heads) * width
    if kind in ("qwen3", "gemma3_text", "hunyuan_v1_dense", "exaone4"):  # q and k norm, per head
        per_layer += 2 * width
    if kind in ("olmo2", "olmo3"):  # q and k norm over all heads
        per_layer += (heads + kv_heads) * width
    if kind in ("gemma2", "gemma3_text"):  # four norms a layer
        per_layer += 2 * hidden
    return int(config["num_hidden_layers"] * per_layer)


def test_catalogue_is_not_empty() -> None:
    assert len(MODELS) >= 150
    assert not [p.name for p in CATALOGUE.iterdir() if p.suffix != ".yaml"]


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_file_name_is_the_id(path: Path) -> None:
    model = MODELS[path.stem]
    assert model["id"] == path.stem
    assert model["id"] == model["hub_id"].lower().replace("/", "--")


@each_model
def test_keys_and_types(model: Model) -> None:
    assert set(model) == TOP_KEYS
    assert model["status"] in ("stable", "draft")
    assert model["title"]
    assert all(isinstance(alias, str) and alias for alias in model["aliases"])
    config = model["config"]
    assert isinstance(config["model_type"], str)
    assert set(config) <= SHOWN | {"model_type", "quantization_config"} | keys_read(config)


def keys_read(config: Config) -> set[str]:
    """The keys at the top of a config that its family looks for, and the parts it looks into."""
    rules = rules_for()
    found: set[str] = set()
    outer = choose(rules.architectures, "probe", config)
    nested = outer.data.get("text")
    files = [outer]
    if nested is not None:
        found |= {place.split(".")[0] for place in nested["at"]}
        text = text_part(config, nested["at"], nested.get("model_type"))
        files.append(choose(rules.architectures, "probe", text))
    for file in files:
        specs = [*file.data.get("fields", {}).values()]
        specs += file.data.get("text", {}).get("fields", {}).values()
        for spec in specs:
            found |= {key.split(".")[0] for key in spec.get("from", ())}
            found |= {place.split(".")[0] for place in spec.get("at", ())}
    return found


@each_model
def test_evidence(model: Model) -> None:
    assert set(model["parameters"]) == {"value", "evidence"}
    assert set(model["parameters"]["evidence"]) == set(model["evidence"])
    for entry in model["evidence"].values():
        assert set(entry) == {"kind", "where", "says"}
        assert entry["kind"] in ("source", "derivation", "assumption")
        assert entry["where"] and entry["says"]
    assert f"{model['parameters']['value']:,} parameters" in model["evidence"]["built"]["says"]


def letters_and_digits(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


def test_a_name_means_one_model() -> None:
    owner: dict[str, str] = {}
    for model in MODELS.values():
        names = [model["hub_id"], *model["aliases"]]
        assert len({name.casefold() for name in names}) == len(names), model["id"]
        for name in names:
            for spelling in (name.casefold(), letters_and_digits(name)):
                assert owner.setdefault(spelling, model["id"]) == model["id"], name


@each_model
def test_parameter_count(model: Model) -> None:
    config, value = model["config"], model["parameters"]["value"]
    report = estimate(config, gpu="b200", lora=False)
    assert report["parameters"] == value
    if config["model_type"] in BY_HAND:
        assert plain_count(config) + extras(config) == value
    uncertain = model["evidence"].get("config", {}).get("kind") == "assumption"
    told = estimate(model["hub_id"], gpu="b200", lora=False, source="catalogue").warnings
    assert any("are not certain" in text for text in told) == uncertain


def test_golden_model() -> None:
    names = {
        name.casefold(): model
        for model in MODELS.values()
        for name in (model["hub_id"], *model["aliases"])
    }
    for name in ("meta-llama/Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"):
        model = names[name.casefold()]
        assert model["id"] == "meta-llama--llama-3.1-8b"
        assert model["parameters"]["value"] == 8_030_261_248


def test_equal_to_the_collected_configs() -> None:
    index = SHARED / "INDEX.csv"
    if not index.is_file():
        pytest.skip(f"{index} is not there: the collected configs are kept outside the repository")
    with index.open(encoding="utf-8", newline="") as stream:
        collected = {row["model_id"].casefold(): row for row in csv.DictReader(stream)}
    compared = 0
    for model in MODELS.values():
        for name in (model["hub_id"], *model["aliases"]):
            row = collected.get(name.casefold())
            if row is None:
                continue
            compared += 1
            file = SHARED / f"{row['model_id'].replace('/', '--')}.json"
            theirs = json.loads(file.read_text(encoding="utf-8"))
            assert model["parameters"]["value"] == int(row["exact_params_total"]), name
            for key, value in model["config"].items():
                if key in theirs or value is not None:  # null may stand for what is not there
                    assert part_of(value, theirs[key]), (name, key)
    assert compared >= 100


def part_of(mine: Any, theirs: Any) -> bool:
    """Whether a value is the one collected; of an object, a part of it."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return all(key in theirs and part_of(value, theirs[key]) for key, value in mine.items())
    return bool(mine == theirs)
