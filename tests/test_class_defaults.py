"""Sizes that config.json leaves to the class are said, with the number that was taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fitcheck import estimate
from fitcheck.cli.main import run
from fitcheck.engine.checks import check_roots
from fitcheck.engine.loading import bundled_root, roots_of

SAID = "does not say every size"
SHORT: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "vocab_size": 100,
}


def said(config: Any) -> list[str]:
    report = estimate(config, gpu="b200", lora=False)
    return [text for text in report.remarks if SAID in text]


def test_every_absent_size_is_said_with_its_number() -> None:
    (text,) = said(SHORT)
    assert text.endswith(
        "stands in: num_key_value_heads 4, intermediate_size 6,144, num_experts 128, "
        "num_experts_per_tok 8, moe_intermediate_size 768."
    )
    notes = estimate(SHORT, gpu="b200", lora=False).to_dict()["notes"]
    assert text in notes


def test_what_follows_from_the_config_is_no_default() -> None:
    config = {
        **SHORT,
        "num_key_value_heads": 4,
        "intermediate_size": 96,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
    }
    assert said(config) == []  # head_dim is hidden size over heads, biases are flags
    assert said("Qwen/Qwen3-30B-A3B") == []
    assert said("meta-llama/Llama-3.1-8B") == []


def test_a_tower_has_sizes_too_where_it_is_there() -> None:
    assert said("google/gemma-3-4b-it") == said({**SHORT, "model_type": "llama"}) == []
    (text,) = said("google/gemma-3n-E4B")
    assert "audio_config.hidden_size 1,536" in text


def test_models_show_says_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SHORT), encoding="utf-8")
    assert run(["models", "show", str(path)]) == 0
    assert f"note: config.json {SAID}" in capsys.readouterr().err
    assert run(["models", "show", str(path), "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert "num_experts 128" in note


def test_a_name_that_no_file_has_is_found(tmp_path: Path) -> None:
    place = "profiles/architectures/any-model.yaml"
    text = (Path(bundled_root()) / place).read_text(encoding="utf-8")
    (tmp_path / place).parent.mkdir(parents=True)
    assert text.count("kda_heads") == 1
    (tmp_path / place).write_text(text.replace("kda_heads", "kda_haeds"), encoding="utf-8")
    found = [p for p in check_roots(roots_of([str(tmp_path)])) if "kda_haeds" in p.message]
    assert [p.code for p in found] == ["F201"] and "kda_heads" in found[0].message
