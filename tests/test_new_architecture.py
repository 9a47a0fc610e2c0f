"""`rules new architecture --from CONFIG`: a family file for a model's first day."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from fitcheck import estimate
from fitcheck.cli.main import run

NEW: dict[str, Any] = {
    "model_type": "first_day",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 512,
    "vocab_size": 2000,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "tie_word_embeddings": False,
    "strange_width": 77,
}


def begun(tmp_path: Path, config: dict[str, Any], *words: str) -> int:
    (tmp_path / "config.json").write_text(json.dumps(config))
    folder, path = str(tmp_path / "rules"), str(tmp_path / "config.json")
    return run(["rules", "new", "architecture", *words, "--from", path, "--to", folder])


def test_a_family_is_proposed_lints_and_estimates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert begun(tmp_path, NEW) == 0
    out = capsys.readouterr().out
    assert "nearest: " in out and "leaves 1 open" in out
    file = tmp_path / "rules/profiles/architectures/first-day.yaml"
    text = file.read_text()
    assert "#   strange_width: 77" in text and "status: draft" in text
    assert "#   expert_width from moe_intermediate_size: 128" in text
    assert run(["rules", "lint", str(tmp_path / "rules")]) == 0
    report = estimate(NEW, gpu="h100", rules=str(tmp_path / "rules"))
    assert report.prepared.model.architecture == "first-day" and report["expert_parameters"] > 0
    assert report.status == "uncertain" and not report.safe


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({**NEW, "model_type": "llama"}, "covers model_type llama already"),
        ({k: v for k, v in NEW.items() if k != "model_type"}, "no model_type"),
        ({"model_type": "first_day", "width": 5}, "No known family finds its dimensions"),
    ],
)
def test_what_cannot_be_proposed(tmp_path: Path, config: dict[str, Any], says: str) -> None:
    with pytest.raises(Exception, match=says):
        begun(tmp_path, config)


def test_the_options_are_for_architectures_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "new", "card", "x", "--check"]) == 2
    assert "are for `new architecture`" in capsys.readouterr().err
    assert run(["rules", "new", "architecture"]) == 2
    assert "give --from CONFIG" in capsys.readouterr().err


def test_check_says_what_is_missing_or_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = begun(tmp_path, NEW, "--check")
    captured = capsys.readouterr()
    assert status == 2  # no library knows this type
    if importlib.util.find_spec("torch") is None:
        assert "pip install 'fitcheck-llm[measure]'" in captured.err
    else:
        assert "could not be built" in captured.err


VISION: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "patch_size": 14,
    "image_size": 28,
    "vision_use_head": False,
    "odd_width": 7,
}
TEXT: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 512,
    "vocab_size": 2000,
    "sliding_window": 64,
    "sliding_window_pattern": 6,
}


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("first_day_text", {"first-day.yaml", "first-day-text.yaml"}),
        ("gemma3_text", {"first-day.yaml"}),
        (None, {"first-day.yaml"}),
    ],
)
def test_a_config_with_a_nested_text_part_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str | None, files: set[str]
) -> None:
    text = {**TEXT, "model_type": kind} if kind else TEXT
    new = {"model_type": "first_day", "text_config": text, "vision_config": VISION}
    assert begun(tmp_path, new) == 0
    out = capsys.readouterr().out
    assert ("the text part is of a new type too" in out) is (len(files) == 2)
    folder = tmp_path / "rules/profiles/architectures"
    assert {file.name for file in folder.iterdir()} == files
    outer = (folder / "first-day.yaml").read_text()
    assert "#   vision_layers from vision_config.num_hidden_layers: 3" in outer
    assert "#   vision_config.odd_width: 7" in outer and "status: draft" in outer
    assert ("model_type: first_day_text" in outer) is False
    assert run(["rules", "lint", str(tmp_path / "rules")]) == 0
    model = estimate(new, gpu="h100", rules=str(tmp_path / "rules")).prepared.model
    assert model.architecture == "first-day" and model.lists["tower_groups"]
    if kind == "gemma3_text":  # the nearest is what it is
        gemma = estimate({**new, "model_type": "gemma3"}, gpu="h100")
        total = estimate(new, gpu="h100", rules=str(tmp_path / "rules"))["built_parameters"]
        assert total == gemma["built_parameters"]
        assert "extends: gemma3-multimodal" in outer
