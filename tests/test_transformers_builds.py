"""The architecture files beside the classes that the installed transformers builds from a config.

Nothing is downloaded and no weights are made: the models stay on the meta device. Needs the extra
`measure`; `.ci/run builds` runs these tests under two versions of transformers. With the sibling
folder ``shared`` its configs are built too.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import estimate
from fitcheck.engine.errors import FitcheckError

for needed in ("torch", "transformers", "peft", "bitsandbytes"):
    pytest.importorskip(needed, reason=f"{needed}, of the extra `measure`, is not installed")

import transformers  # noqa: E402

from fitcheck.measurement.builds import parts  # noqa: E402
from fitcheck.measurement.builds.comparison import differences, estimated, unequal  # noqa: E402
from fitcheck.measurement.builds.configs import native, shallow, text_of  # noqa: E402
from fitcheck.measurement.builds.variations import CHANGES, variations  # noqa: E402
from fitcheck.measurement.built_class import meta_model  # noqa: E402

REPO = Path(__file__).resolve().parents[1]
SHARED = REPO.parent / "shared" / "configs"
VERSION = transformers.__version__
OLD = VERSION.startswith("4.")

Config = dict[str, Any]

REFUSED = {"whisper", "phi3small", "kimi_k3", "nemotron-nas"}
NO_CLASS = {"openelm"}
NO_CLASS_BEFORE_5 = {"deepseek_v32", "deepseek_v4", "exaone", "gemma4", "glm_moe_dsa",
                     "kimi_linear", "mimo_v2_flash", "minicpm3", "ministral3", "nemotron_h",
                     "qwen3_5", "qwen3_5_moe"}  # fmt: skip
# Its vision tower is a class of timm, which needs torchvision; the registry has that for CUDA only.
NEEDS_TIMM = {"gemma3n"}


def collected() -> dict[str, Config]:
    """Every config by its Hub id; `shared:` before those of the sibling folder."""
    found: dict[str, Config] = {}
    for path in sorted((REPO / "profiles" / "models").glob("*.yaml")):
        entry = yaml.safe_load(path.read_text(encoding="utf-8"))
        found[entry["hub_id"]] = entry["config"]
    if (SHARED / "INDEX.csv").is_file():
        with (SHARED / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
            names = [row["model_id"] for row in csv.DictReader(stream)]
        for name in names:
            text = (SHARED / f"{name.replace('/', '--')}.json").read_text(encoding="utf-8")
            found[f"shared:{name}"] = json.loads(text)
    return found


def not_built(config: Config) -> str | None:
    """Why there is no class to compare with."""
    kinds = {config["model_type"], text_of(config).get("model_type")}
    if kinds & REFUSED:
        return "refused by its architecture file"
    if kinds & NO_CLASS or (OLD and kinds & NO_CLASS_BEFORE_5):
        return f"transformers {VERSION} has no class for it"
    return "its tower needs timm" if kinds & NEEDS_TIMM else None


CONFIGS = collected()
BUILT = {name: config for name, config in CONFIGS.items() if not_built(config) is None}


@cache
def kinds() -> dict[str, str]:
    """One config of every kind: of a model type, with other modules or parameters than the rest."""
    found: dict[Any, str] = {}
    for name, config in BUILT.items():
        groups = estimated(config).prepared.model.lists["all_groups"]
        items = [(m["path"], m["kind"], m["bias"] > 0) for g in groups for m in g["modules"]]
        items += [(p["path"], p["part"]) for g in groups for p in g["parameters"]]
        found.setdefault((config["model_type"], frozenset(items)), name)
    return {name: name for name in found.values()}


each_config = pytest.mark.parametrize("name", list(BUILT))
each_kind = pytest.mark.parametrize("name", list(kinds()))


# --- as they are ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*CONFIGS} - {*BUILT}))
def test_what_is_not_built(name: str) -> None:
    """So that no config drops out of the comparison unseen."""
    config = CONFIGS[name]
    if {config["model_type"]} & REFUSED:
        with pytest.raises(FitcheckError):
            estimate(config, transformers=VERSION)
    else:
        with pytest.raises((ValueError, KeyError, ImportError)):
            meta_model(native(config))


def experts_apart(config: Config) -> bool:
    """Whether the class has thousands of linear modules, which take minutes to build."""
    groups = estimated(config).prepared.model.lists["all_groups"]
    return bool(sum(g["count"] * m["instances"] for g in groups for m in g["modules"]
                    if m["role"] == "expert" and m["kind"] == "linear") > 2000)  # fmt: skip


@each_config
def test_the_class_is_what_is_counted(name: str) -> None:
    config = BUILT[name]
    if experts_apart(config):
        config = shallow(config)
    assert differences(config, native(config)) == []


# --- changed in one respect ----------------------------------------------------------------------

# Changes that come out inexact or refused, with the reason; what a class refuses is not counted.
KNOWN = {
    ("shared:Zyphra/Zamba2-2.7B", "width"): "refused: the Mamba heads no longer divide the width",
    ("microsoft/bitnet-b1.58-2B-4T", "head width"): "refused: the norm of the heads does not fit",
    **(
        {}
        if OLD
        else {("allenai/OLMoE-1B-7B-0924", "head width"): "built, but the norms do not fit"}
    ),
}


@cache
def changed(name: str) -> dict[str, list[str] | None]:
    """What is wrong with each changed config, None where there is no such class."""
    found: dict[str, list[str] | None] = {}
    for change, config in variations(shallow(BUILT[name])):
        try:
            meta_model(native(config))
        except Exception:  # whatever a class says of sizes that do not fit together
            found[change] = None
            continue
        try:
            found[change] = differences(config, native(config))
        except FitcheckError as error:
            found[change] = [str(error)]
    return found


@each_kind
def test_changed_configs(name: str) -> None:
    wrong = {change: says for change, says in changed(name).items() if says}
    assert set(wrong) == {change for kind, change in KNOWN if kind == name}, wrong


def test_almost_all_changed_configs_are_exact() -> None:
    outcomes: Counter[str] = Counter()
    built: Counter[str] = Counter()
    for name in kinds():
        for change, says in changed(name).items():
            outcomes["no class" if says is None else "inexact" if says else "exact"] += 1
            built[change] += says is not None
    print(VERSION, dict(outcomes), dict(built))
    assert outcomes["exact"] >= 0.98 * (outcomes["exact"] + outcomes["inexact"])
    assert outcomes["no class"] <= 0.05 * sum(outcomes.values())
    assert set(built) == set(CHANGES) and min(built.values()) >= 10


# --- adapters ------------------------------------------------------------------------------------

ADAPTED = [
    "Qwen/Qwen2.5-7B", "google/gemma-2-2b", "openai-community/gpt2", "bigscience/bloom-560m",
    "facebook/opt-350m", "EleutherAI/gpt-neox-20b", "EleutherAI/gpt-j-6b",
    "microsoft/Phi-3.5-mini-instruct", "CohereLabs/c4ai-command-r7b-12-2024",
    "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V3", "baidu/ERNIE-4.5-21B-A3B-PT",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct", "ai21labs/Jamba-v0.1", "LiquidAI/LFM2-2.6B",
    "tiiuae/falcon-mamba-7b", "ibm-granite/granite-4.0-h-tiny", "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "google/recurrentgemma-2b", "google/gemma-3-4b-it", "Qwen/Qwen3-VL-2B-Instruct",
    "meta-llama/Llama-3.2-11B-Vision", "llava-hf/llava-1.5-7b-hf", "google/gemma-4-26B-A4B",
    "microsoft/Phi-3.5-MoE-instruct",
]  # fmt: skip
STANDARD = ("q_proj", "k_proj", "v_proj", "o_proj")
PATTERN = r".*\.(q_proj|q_a_proj|query_key_value|c_attn|qkv_proj|in_proj)"


# What PEFT refuses.
NO_ADAPTERS = {
    ("falcon_mamba", "all-linear"): "incompatible with Mamba-based models",
    ("gemma4", str(list(STANDARD))): "Gemma4ClippableLinear",  # names find the tower too
    ("gemma4", PATTERN): "Gemma4ClippableLinear",
}


def adapters_agree(config: Config, model: Any, targets: Any, **flags: Any) -> None:
    kind = config["model_type"]
    refused = NO_ADAPTERS.get((kind, str(targets)))
    if refused:
        with pytest.raises(ValueError, match=refused):
            parts.adapters(model, 4, targets)
        return
    real = parts.adapters(model, 4, targets)
    report = estimated(config, lora_r=4, lora_targets=targets, **flags)
    # From 0.19 on PEFT carries targets over to the experts and the router of some families, which
    # are no modules from transformers 5 on (peft/utils/transformers_weight_conversion.py).
    assert [
        *unequal(f"{targets}, parameters", report["parameter_adapters"], real["parameters"])
    ] == []
    both = real["modules"] + real["parameters"]
    assert [*unequal(str(targets), report["lora_parameters"], both)] == []


@pytest.mark.parametrize("name", [name for name in ADAPTED if name in BUILT])
def test_adapters_of_peft(name: str) -> None:
    config = shallow(BUILT[name])
    leaves = {path.rpartition(".")[2] for path, *_ in parts.linears(meta_model(native(config)))}
    names = [leaf for leaf in STANDARD if leaf in leaves]
    for targets in (names, "all-linear", PATTERN) if names else ("all-linear", PATTERN):
        adapters_agree(config, meta_model(native(config)), targets)
    packed = meta_model(native(config))
    parts.pack(packed)
    adapters_agree(config, packed, "all-linear", quant="nf4")


# --- caches --------------------------------------------------------------------------------------

NO_CACHE = {
    "gemma4": "its mask reads values, and there are none on the meta device",
    "recurrent_gemma": "it keeps its states outside of a cache",
    "llama4": "without images it reads an attribute that its output does not have",
}
# Before 5.0 these route their experts, scan their states or place their tokens by values.
NO_CACHE_BEFORE_5 = {
    "bamba", "ernie4_5_moe", "falcon_h1", "glm4_moe", "granitemoe", "granitemoehybrid",
    "hunyuan_v1_moe", "jamba", "lfm2", "mamba2", "minimax", "mixtral", "olmoe", "phimoe",
    "qwen2_5_vl", "qwen2_moe", "qwen2_vl", "qwen3_moe", "qwen3_next", "zamba2",
}  # fmt: skip
TOO_HIGH = {"deepseek_v4"}  # keeps a window and one entry for many tokens
# They go through their tokens one after the other.
SEQUENTIAL = {"mamba", "falcon_mamba", "jamba", "kimi_linear"}


@each_kind
def test_caches(name: str) -> None:
    config = shallow(BUILT[name])
    kind = config["model_type"]
    if kind in NO_CACHE:
        pytest.skip(NO_CACHE[kind])
    if OLD and kind in NO_CACHE_BEFORE_5:
        pytest.skip("its forward pass reads values, and there are none on the meta device")
    if "first_k_dense_replace" in config:
        config["first_k_dense_replace"] = config["num_hidden_layers"]  # experts cache nothing
    model = meta_model(native(config))
    longest = 200 if kind in SEQUENTIAL else min(8192, config.get("n_positions", 8192))
    for tokens in (64, longest):
        counted = estimated(config, seq_len=tokens)["cache_bytes"]
        real = parts.cache_bytes(model, tokens)
        if kind in TOO_HIGH:
            assert counted > real
        else:
            assert [*unequal(f"{tokens} tokens", counted, real)] == []
