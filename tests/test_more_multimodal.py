"""Multimodal families: counts against the classes that transformers builds, and what inputs become.

`golden/more_multimodal.yaml` holds what was built, under two versions, from a base config, from the
default config of the class and from changes of the base.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import Report, estimate
from fitcheck.engine.errors import FitcheckError, Refusal

GOLDEN = Path(__file__).parent / "golden" / "more_multimodal.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BUILT: Mapping[str, Any] = yaml.load(GOLDEN.read_text(encoding="utf-8"), LOADER)
EVIDENCE = GOLDEN.parents[2] / "measurement" / "evidence" / "cpu_multimodal.jsonl"
ROWS = [json.loads(line) for line in EVIDENCE.read_text(encoding="utf-8").splitlines()]
VERSIONS = ("5.24.0", "4.57.6")
Config = dict[str, Any]
Linears = Counter[tuple[str, int, int, bool]]


def changed(base: Mapping[str, Any], change: Mapping[str, Any]) -> Config:
    """A config with other values at dotted keys; None takes a key away."""
    config: Config = copy.deepcopy(dict(base))
    for path, value in change.items():
        *above, key = path.split(".")
        place = config
        for name in above:
            place = place.setdefault(name, {})
        if value is None:
            place.pop(key, None)
        else:
            place[key] = value
    return config


def config_of(model_type: str, case: Mapping[str, Any]) -> Config:
    if "config" in case:
        return dict(case["config"])
    return changed(BUILT[model_type]["base"], case["change"])


CASES = [
    pytest.param(model_type, case, version, id=f"{model_type}-{number}-{version}")
    for model_type, built in BUILT.items()
    for number, case in enumerate(built["cases"])
    for version in VERSIONS
    if version in case
]


def modules(report: Report) -> Linears:
    """The linear modules of the canonical model, but for the head."""
    found: Linears = Counter()
    for group in report.prepared.model.lists["all_groups"]:
        for m in group["modules"]:
            if m["kind"] not in ("stacked", "patched", "head"):
                key = (m["path"], m["d_in"], m["d_out"], bool(m["bias"]))
                found[key] += group["count"] * m["copies"]
    return found


def shortened(rows: list[list[Any]], paths: list[str]) -> Linears:
    """The modules of a class under the longest known path that theirs ends with."""
    found: Linears = Counter()
    for path, d_in, d_out, bias, count in rows:
        short = next((p for p in paths if path == p or path.endswith(f".{p}")), path)
        found[short, d_in, d_out, bias] += count
    return found


@pytest.mark.parametrize(("model_type", "case", "version"), CASES)
def test_counts(model_type: str, case: Mapping[str, Any], version: str) -> None:
    config = config_of(model_type, case)
    report = estimate(config, precision="bf16", lora_targets="all-linear", transformers=version)
    assert report.prepared.model.verified
    names = ("parameters", "tower_parameters", "embedding_parameters", "head_parameters")
    found = modules(report)
    weights = sum(n * d_in * d_out for (_, d_in, d_out, _), n in found.items())
    assert [*(report[name] for name in names), found.total(), weights] == case[version]
    rows = case.get(f"linears {version}", case.get(f"linears {VERSIONS[0]}"))
    if rows:
        paths = sorted({path for path, *_ in found}, key=len, reverse=True)
        assert found == shortened(rows, paths)


def test_every_type_has_enough_cases() -> None:
    for model_type, built in BUILT.items():
        assert len(built["cases"]) >= 6, model_type
        assert any("config" in case for case in built["cases"]), model_type


# From the image processors and classes of transformers 5.24, for the default config: positions of
# one tower, tokens of the decoder.
IMAGE, AUDIO = {"images": 1}, {"audio_seconds": 31}
SIZED = {"images": 1, "image_size": 560}
INPUTS: list[tuple[str, dict[str, Any], int, int]] = [
    ("aya_vision", IMAGE, 13 * 27**2, 13 * 13**2),
    ("cohere2_vision", IMAGE, 13 * 32**2, 13 * 16**2),
    ("llava_onevision", IMAGE, 37 * 27**2, 27**2 + 162 * 49 + 162),
    ("llava_next_video", IMAGE, 5 * 577, 5 * 576 + 48),
    ("vipllava", IMAGE, 577, 576),
    ("video_llava", IMAGE, 257, 256),
    ("lighton_ocr", SIZED, 40**2, 20**2),
    ("qwen2_audio", AUDIO, 2 * 1500, 2 * 750),
    ("audioflamingo3", AUDIO, 2 * 1500, 2 * 750),
    ("musicflamingo", AUDIO, 2 * 1500, 2 * 750),
    ("shieldgemma2", IMAGE, 14**2, 256),
    ("deepseek_vl", IMAGE, 14**2, 14**2),
    ("fuyu", SIZED, 19**2, 19**2),
    ("qianfan_ocr", IMAGE, 13 * 1025, 13 * 256),
    ("video_llama_3", SIZED, 35**2, 35**2),
    ("exaone4_5", SIZED, 40**2, 20**2),
    ("idefics2", IMAGE, 7**2, 64),
    ("ovis2", IMAGE, 13 * 16**2, 13 * 16**2),
    ("minicpmv4_6", IMAGE, 10 * 32**2, 10 * 8**2),
    ("minicpmv4_7", IMAGE, 10 * 32**2, 10 * 8**2),
    ("minicpm_ocr", IMAGE, 10 * 32**2, 10 * 16**2),
    ("glm4v", SIZED, 40**2, 20**2),
    ("glm46v", SIZED, 40**2, 20**2),
    ("glmga", SIZED, 40**2, 20**2),
    ("glm4v_moe", SIZED, 40**2, 20**2),
    ("glm_ocr", SIZED, 40**2, 20**2),
    ("qwen2_5_omni_thinker", SIZED, 40**2, 20**2),
    ("qwen2_5_omni_thinker", AUDIO, 16 * 100, 16 * 50),
    ("qwen3_omni_moe_thinker", SIZED, 36**2, 18**2),
    ("qwen3_omni_moe_thinker", AUDIO, 31 * 13, 31 * 13),
    ("paddleocr_vl", SIZED, 40**2, 20**2),
    ("aria", IMAGE, 30**2, 256),
    ("ernie4_5_vl_moe", SIZED, 40**2, 20**2),
]


@pytest.mark.parametrize(("model_type", "flags", "tower", "tokens"), INPUTS)
def test_what_inputs_become(
    model_type: str, flags: dict[str, Any], tower: int, tokens: int
) -> None:
    (config,) = [case["config"] for case in BUILT[model_type]["cases"] if "config" in case]
    report = estimate(config, gpu="b200", seq_len=32_768, flash_attn=True, lora=False, **flags)
    groups = report.run.items("tower_groups")
    assert max(report.run.value_at("tower_positions", group) for group in groups) == tower
    assert report["image_tokens"] == tokens


def test_every_type_has_its_inputs() -> None:
    assert {model_type for model_type, *_ in INPUTS} == set(BUILT)


@pytest.mark.parametrize(
    ("model_type", "change", "message"),
    [
        ("aya_vision", {"vision_config.model_type": "clip_vision_model"}, "SigLIP tower only"),
        ("aya_vision", {"vision_feature_layer": [-1, -2]}, "several layers"),
        ("llava_onevision", {"vision_aspect_ratio": "anyres"}, "anyres_max_9 only"),
        ("llava_onevision", {"vision_config.model_type": "pixtral"}, "SigLIP or CLIP tower"),
        ("llava_next_video", {"spatial_pool_mode": "conv"}, "average or max pooling"),
        ("vipllava", {"vision_config.model_type": "pixtral"}, "CLIP tower only"),
        ("video_llava", {"vision_config.model_type": "pixtral"}, "CLIP towers only"),
        ("lighton_ocr", {"vision_config.model_type": "siglip_vision_model"}, "Pixtral tower only"),
        ("deepseek_vl", {"vision_config.model_type": "clip_vision_model"}, "SigLIP tower only"),
        ("ovis2", {"hidden_size": 128}, "no run can join"),
        ("ovis2", {"vocab_size": 1001}, "such a head is not modelled"),
        ("aria", {"vision_config.model_type": "clip_vision_model"}, "idefics3_vision tower only"),
        ("aria", {"projector_patch_to_query_dict": {"1225": 8}}, "no entry for 4900"),
        (
            "ernie4_5_vl_moe",
            {"text_config.mlp_layer_types": ["dense"]},
            "1 entries for",
        ),
        ("minicpmv4_6", {"merger_times": 2}, "more than once"),
        ("minicpmv4_6", {"vision_config.window_kernel_size": [3, 3]}, "only those of four"),
    ],
)
def test_what_is_not_modelled(model_type: str, change: Config, message: str) -> None:
    with pytest.raises(FitcheckError, match=message):
        estimate(changed(BUILT[model_type]["base"], change))


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_what_the_class_keeps_of_an_input(row: dict[str, Any]) -> None:
    config = row["config"]
    kind = "audio" if row["case"].endswith("audio") or "vision_config" not in config else "vision"
    flags: dict[str, Any] = {"audio_seconds": 1} if kind == "audio" else {"images": 1}
    report = estimate(config, gpu="b200", seq_len=32_768, flash_attn=True, lora=False, **flags)
    groups = [g for g in report.run.items("tower_groups") if g["tower"] == kind]
    layer, around = groups[0], groups[-1]
    assert layer["tower_width"] == row["width"]
    plain, eager = row["sdpa"], row["eager"]
    assert plain["kept_a_layer"] <= layer["kept_width"] <= 1.08 * plain["kept_a_layer"]
    assert plain["kept_around"] <= around["kept_width"]
    scores = 4 * row["positions"]
    assert eager["kept_a_layer"] <= layer["kept_width"] + 3 * scores


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("fast_vlm", "library timm builds"),
        ("blip-2", "keeps its own in fp32"),
        ("got_ocr2", "builds them in windows"),
        ("janus", "network of convolutions"),
        ("florence2", "attend to another stack"),
        ("pi0", "on noise, on actions"),
        ("qwen2_5_omni", "with model_type qwen2_5_omni_thinker"),
        ("phi4_multimodal", "two matrices that join each"),
        ("step3p7", "towers of its type, step3p7, are not modelled"),
    ],
)
def test_what_is_refused_by_name(model_type: str, reason: str) -> None:
    config = {"model_type": model_type, "text_config": BUILT["glm4v"]["base"]["text_config"]}
    with pytest.raises(Refusal, match=" ".join(reason.split())):
        estimate(config)
