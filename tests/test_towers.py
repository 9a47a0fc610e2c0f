"""Images and audio: what they become, what the towers take, and what cannot be estimated."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import estimate
from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.closed_form import closed_form
from fitcheck.engine.errors import FitcheckError, InputProblem, Refusal
from fitcheck.engine.report import Report
from fitcheck.engine.vectorized import evaluate

REPO = Path(__file__).resolve().parents[1]
EVIDENCE = REPO / "measurement" / "evidence" / "cpu_towers.jsonl"
ROWS = [json.loads(line) for line in EVIDENCE.read_text(encoding="utf-8").splitlines()]

LLAVA = "llava-hf/llava-1.5-7b-hf"
GEMMA = "google/gemma-3-4b-it"
QWEN = "Qwen/Qwen2.5-VL-7B-Instruct"
MLLAMA = "meta-llama/Llama-3.2-11B-Vision"
MISTRAL3 = "mistralai/devstral-small-2-24b-instruct-2512"
TEXT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "head_dim": 16,
}
VOXTRAL = {"model_type": "voxtral", "text_config": {"model_type": "llama", **TEXT}}
IDEFICS3 = {
    "model_type": "idefics3",
    "text_config": {"model_type": "llama", **TEXT},
    "vision_config": {"image_size": 364, "patch_size": 14},
}
PALIGEMMA = {
    "model_type": "paligemma",
    "text_config": {"model_type": "gemma", **TEXT},
    "vision_config": {"image_size": 448, "patch_size": 14},
}
LFM2_VL = {
    "model_type": "lfm2_vl",
    "text_config": {"model_type": "lfm2", **TEXT, "full_attn_idxs": [1]},
}

KIMI = {
    "model_type": "kimi_k25",
    "text_config": {
        "model_type": "deepseek_v3",
        **TEXT,
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 32,
    },
}


def run(model: Any, **flags: Any) -> Report:
    """A report with attention that stores no scores, unless told otherwise."""
    return estimate(model, gpu="b200", **{"seq_len": 16_384, "flash_attn": True, **flags})


def positions(report: Report) -> list[int]:
    """Positions of each group of the towers, without repetition."""
    groups = report.run.items("tower_groups")
    found = [report.run.value_at("tower_positions", group) for group in groups]
    return list(dict.fromkeys(p for p in found if p))


@pytest.mark.parametrize(
    ("model", "flags", "tower", "tokens"),
    [  # from the processors and classes of transformers 5.24
        (LLAVA, {"images": 1}, 24**2 + 1, 24**2),
        ("llava-hf/llava-v1.6-mistral-7b-hf", {"images": 1}, 5 * 577, 5 * 576 + 48),
        (GEMMA, {"images": 3}, 3 * 64**2, 3 * 256),
        ("google/gemma-4-e2b", {"images": 1}, 280 * 9, 280),
        ("google/gemma-4-e2b", {"audio_seconds": 40}, 1000, 1000),
        ("google/gemma-3n-e4b", {"audio_seconds": 40}, 2 * 750, 2 * 188),
        ("HuggingFaceTB/SmolVLM-256M-Instruct", {"images": 1}, 17 * 32**2, 17 * 64),
        (IDEFICS3, {"images": 1}, 17 * 26**2, 17 * 169),
        ("OpenGVLab/InternVL3-8B-hf", {"images": 1}, 13 * 1025, 13 * 256),
        ("mistral-community/pixtral-12b", {"images": 1, "image_size": 512}, 32**2, 32**2),
        ("mistral-community/pixtral-12b", {"images": 1, "image_size": 4096}, 64**2, 64**2),
        (MISTRAL3, {"images": 1, "image_size": 280}, 400, 100),
        (MLLAMA, {"images": 1}, 4 * 1608, 0),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", {"images": 1}, 17 * 577, 17 * 144),
        ("Qwen/Qwen2-VL-2B-Instruct", {"images": 2, "image_size": 280}, 2 * 400, 2 * 100),
        (QWEN, {"images": 1, "image_size": 280}, 400, 100),
        (QWEN, {"images": 1, "image_size": 281}, 22**2, 121),
        ("Qwen/Qwen3-VL-8B-Instruct", {"images": 1, "image_size": 320}, 400, 100),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", {"images": 1, "image_size": 320}, 400, 100),
        ("Qwen/Qwen3.5-27B", {"images": 1, "image_size": 320}, 400, 100),
        (VOXTRAL, {"audio_seconds": 31}, 2 * 1500, 2 * 375),
        (PALIGEMMA, {"images": 1}, 32**2, 32**2),
        (KIMI, {"images": 1, "image_size": 281, "lora": False}, 22**2, 121),
        (LFM2_VL, {"images": 1, "lora": False}, 11 * 1024, 11 * 256),
    ],
)  # fmt: skip
def test_what_inputs_become(model: Any, flags: dict[str, Any], tower: int, tokens: int) -> None:
    report = run(model, **flags)
    assert positions(report) == [tower]
    assert report["image_tokens"] == tokens
    assert report["text_tokens"] == 16_384 - tokens


def scaled(name: str, part: str, **given: Any) -> dict[str, Any]:
    """A config of the catalogue with another tower."""
    path = next((REPO / "profiles" / "models").glob(f"{name}*.yaml"))
    config: dict[str, Any] = copy.deepcopy(yaml.safe_load(path.read_text("utf-8"))["config"])
    config[part] = {**config.get(part, {}), **given}
    return config


def of_row(row: dict[str, Any]) -> Any:
    """A config whose tower has the shape of a row; None for a class that shares its block."""
    h, f, n = row["width"], row["mlp_width"], row["heads"]
    usual = {"hidden_size": h, "intermediate_size": f, "num_attention_heads": n}
    qwen = {"hidden_size": h, "intermediate_size": f, "num_heads": n}
    gemma = {"num_key_value_heads": n, "head_dim": h // n}
    made = {
        "clip": lambda: scaled("llava-hf--llava-1.5", "vision_config", **usual),
        "siglip": lambda: scaled("google--gemma-3-4b", "vision_config", **usual),
        "smolvlm": lambda: scaled("huggingfacetb--smolvlm", "vision_config", **usual),
        "idefics3": lambda: {**IDEFICS3, "vision_config": usual},
        "siglip2": lambda: {**LFM2_VL, "vision_config": usual},
        "internvl": lambda: scaled("opengvlab", "vision_config", **usual, use_qk_norm=False),
        "internvl_qk_norm": lambda: scaled("opengvlab", "vision_config", **usual, use_qk_norm=True),
        "pixtral": lambda: scaled("mistral-community", "vision_config", **usual),
        "llama4": lambda: scaled("meta-llama--llama-4", "vision_config", **usual),
        "mllama": lambda: scaled(
            "meta-llama--llama-3.2-11b", "vision_config", **usual, attention_heads=n
        ),
        "qwen2_vl": lambda: scaled(
            "qwen--qwen2-vl", "vision_config", embed_dim=h, mlp_ratio=f // h, num_heads=n
        ),
        "qwen2_5_vl": lambda: scaled("qwen--qwen2.5-vl", "vision_config", **qwen),
        "qwen3_vl": lambda: scaled("qwen--qwen3-vl-8b", "vision_config", **qwen),
        "qwen3_5": lambda: scaled("qwen--qwen3.5-27b", "vision_config", **qwen),
        "gemma4_vision": lambda: scaled("google--gemma-4-e2b", "vision_config", **usual, **gemma),
        "gemma4_audio": lambda: scaled("google--gemma-4-e2b", "audio_config", **usual),
        "gemma3n_audio": lambda: scaled(
            "google--gemma-3n", "audio_config", hidden_size=h, conf_num_attention_heads=n
        ),
        "kimi_k25": lambda: {**KIMI, "vision_config": usual},
        "voxtral": lambda: {**VOXTRAL, "audio_config": usual},
    }
    return made[row["tower"]]() if row["tower"] in made else None


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_layer_is_that_of_the_class(row: dict[str, Any]) -> None:
    config = of_row(row)
    if config is None:
        return
    audio = "audio" in row["tower"] or row["tower"] == "voxtral"
    report = run(config, **({"audio_seconds": 1} if audio else {"images": 1}), lora=False)
    kind = "audio" if audio else "vision"
    groups = [g for g in report.run.items("tower_groups") if g["tower"] == kind]
    layer, around = groups[0], groups[-1]
    plain = row.get("sdpa", row["eager"])
    assert plain["kept_a_layer"] <= layer["kept_width"] <= 1.02 * plain["kept_a_layer"]
    if row["tower"] != "mllama":  # its second kind of layers is in the figure
        assert plain["kept_around"] <= around["kept_width"]
    assert layer["recomputed"] == ("stored_a_layer" in plain)
    if "stored_a_layer" in plain:
        assert plain["stored_a_layer"] == layer["tower_width"] == row["width"]
    peak = layer["kept_width"] + layer["tower_width"] + 2 * layer["mlp_width"]
    whole = max(peak, around["kept_width"])  # convolutions of audio are the peak of a small tower
    masks = layer["mask_copies"] * row["positions"]
    collected = layer["collected_outputs"] * 2 * row["width"]
    if row["mlp_width"] == 4 * row["width"]:  # as in the published towers, or nearly
        assert plain["frozen_peak"] <= whole + masks + collected
    assert plain.get("recompute_peak", 0) <= peak + masks + around["kept_width"]
    if "sdpa" in row and row["tower"] not in ("mllama",):
        scores = row["heads"] * row["positions"]
        assert row["eager"]["kept_a_layer"] <= layer["kept_width"] + 3 * scores
        more = max(peak - layer["kept_width"], 3 * scores)
        eager = layer["kept_width"] + 3 * scores + more + masks + collected
        assert row["eager"]["frozen_peak"] <= eager
        assert row["eager"]["recompute_peak"] <= eager + around["kept_width"]


def test_frozen_towers_keep_nothing_unless_inputs_ask_for_gradients() -> None:
    trained, frozen = (run(GEMMA, images=1, lora=False, freeze_towers=f) for f in (False, True))
    assert trained["A_towers_kept"] > 0 == frozen["A_towers_kept"]
    assert trained["total"] > frozen["total"]
    # With adapters and checkpointing PEFT lets gradients into every tower.
    stored = run(GEMMA, images=1, grad_checkpoint=True, freeze_towers=True)
    assert stored["A_towers_kept"] >= 27 * 4096 * 1152 * 2
    assert run(GEMMA, images=1, freeze_towers=True)["A_towers_kept"] == 0


def test_adapters_on_the_decoder_alone_leave_the_tower_without_a_graph() -> None:
    assert run(QWEN, images=1)["A_towers_kept"] == 0  # its tower has one qkv matrix
    assert run(QWEN, images=1, lora_targets="all-linear")["A_towers_kept"] > 2**30
    assert run(LLAVA, images=1)["A_towers_kept"] > 2**28  # q_proj is there too


def test_checkpointing_keeps_less_except_where_the_class_has_none() -> None:
    kept = {c: run(LLAVA, images=1, lora=False, grad_checkpoint=c) for c in (False, True)}
    assert kept[False]["A_towers_kept"] > 10 * kept[True]["A_towers_kept"]
    same = {c: run(MLLAMA, images=1, lora=False, grad_checkpoint=c) for c in (False, True)}
    assert same[False]["A_towers_kept"] == same[True]["A_towers_kept"]


@pytest.mark.parametrize(
    "flags", [{}, {"grad_checkpoint": True}, {"lora": False}, {"flash_attn": False}]
)
def test_more_and_larger_inputs_take_more(flags: dict[str, Any]) -> None:
    for more in ("images", "image_size", "batch_size"):
        totals = [
            run(QWEN, **{"images": 2, "image_size": 560, **flags, more: n})["activations"]
            for n in ((1, 2, 3) if more != "image_size" else (280, 560, 1120))
        ]
        assert totals == sorted(totals), more
    totals = [run(VOXTRAL, audio_seconds=n, **flags)["activations"] for n in (0, 30, 31, 90)]
    assert totals == sorted(totals)


def test_images_of_pixtral_attend_in_one_matrix() -> None:
    one, two = (
        run("mistral-community/pixtral-12b", images=n, image_size=512, flash_attn=False)
        for n in (1, 2)
    )
    scores = [r.run.value_at("tower_scores", r.run.items("tower_groups")[0]) for r in (one, two)]
    assert scores[1] == 4 * scores[0] == 4 * 2 * 16 * 1024**2


def test_windows_of_qwen_attend_to_themselves() -> None:
    report = run(QWEN, images=1, image_size=1120, flash_attn=False)
    spans = {
        g["count"]: report.run.value_at("tower_span", g)
        for g in report.run.items("tower_groups")[:-1]
    }
    assert spans == {28: 64, 4: 6400}


def test_cross_attention_reads_images_outside_of_the_sequence() -> None:
    text, image = (run(MLLAMA, images=n, freeze_towers=True) for n in (0, 1))
    assert image["cross_positions"] == 6404
    states = 2 * 6404 * (4096 + 16_384)  # cross states and their mask
    keys = 8 * 2 * 6404 * (2 * 4096 + 3 * 1024)
    assert image["activations"] - text["activations"] == states + keys


def test_freezing_leaves_the_towers_out_of_training() -> None:
    whole, decoder = (run(GEMMA, lora=False, freeze_towers=f) for f in (False, True))
    assert whole["trainable_parameters"] == whole["parameters"]
    assert decoder["trainable_parameters"] == whole["parameters"] - whole["tower_parameters"]
    assert decoder["optimizer"] < whole["optimizer"]
    all_of_it = run(LLAVA, lora_r=1)["lora_parameters"]
    assert all_of_it - run(LLAVA, lora_r=1, freeze_towers=True)["lora_parameters"] == 24 * 3 * 2048
    with pytest.raises(Refusal, match="modules of the towers alone"):
        run(QWEN, lora_targets="qkv", freeze_towers=True)


def test_what_cannot_be_estimated() -> None:
    with pytest.raises(Refusal, match="no vision tower"):
        run("meta-llama/Llama-3.1-8B", images=1)
    with pytest.raises(Refusal, match="no audio tower"):
        run(GEMMA, audio_seconds=1)
    with pytest.raises(Refusal, match="no vision tower that is modelled"):
        run("google/gemma-3n-e4b", images=1)
    with pytest.raises(Refusal, match=r"become 2,?304 tokens, and --seq-len 2,?048"):
        run(GEMMA, images=9, seq_len=2048)
    with pytest.raises(InputProblem, match="no meaning without images"):
        run(QWEN, image_size=512)
    with pytest.raises(FitcheckError, match="out of range"):
        run(QWEN, images=-1)


def test_who_is_told_that_text_alone_is_priced() -> None:
    def told(report: Report) -> bool:
        return any("priced with text alone" in remark for remark in report.warnings)

    assert told(run(GEMMA)) and not told(run(GEMMA, images=1))
    assert not told(run("meta-llama/Llama-3.1-8B"))


def test_the_json_says_what_was_priced() -> None:
    found = run(GEMMA, images=4, freeze_towers=True).to_dict()
    assert found["image_tokens"] == 1024
    training = found["training"]
    assert (training["images"], training["audio_seconds"]) == (4, 0)
    assert (training["image_size"], training["freeze_towers"]) == (1024, True)
    assert run("meta-llama/Llama-3.1-8B").to_dict()["image_tokens"] == 0


def test_evidence_of_text_is_not_weakened_by_towers() -> None:
    report = estimate("meta-llama/Llama-3.1-8B", gpu="t4", qlora=True, precision="fp16")
    assert report.grade("activations").grade == "measured"


@pytest.mark.parametrize("model", [LLAVA, QWEN, MLLAMA, VOXTRAL])
def test_arrays_come_out_as_one_estimate_after_the_other(model: Any) -> None:
    axis = "audio_seconds" if model is VOXTRAL else "images"
    start = prepare(rules_for(), model, gpu="h200", vram_mib=None, source="catalogue", flags={})
    pairs = [(n, checkpoint) for n in (0, 1, 3) for checkpoint in (False, True)]
    amounts, switches = map(list, zip(*pairs, strict=True))
    axes: dict[str, Any] = {axis: amounts, "grad_checkpoint": switches, "lora": False}
    got = evaluate(rules_for(), start, axes, "total")
    for place, (amount, checkpoint) in enumerate(pairs):
        one = start.changed(**{axis: amount, "grad_checkpoint": checkpoint, "lora": False})
        assert got[place] == pytest.approx(one.run_with(()).value("total"), rel=1e-12)


def test_the_largest_batch_with_images_is_found_in_closed_form() -> None:
    for model, straight in ((QWEN, True), ("mistral-community/pixtral-12b", False)):
        report = run(model, images=1, lora=False, grad_checkpoint=True, flash_attn=False)
        form = closed_form(report.run, report.prepared.rules.formulas["max_batch_size"])
        assert (
            form is not None
        ) is straight  # one matrix for a whole micro-batch is no straight line
