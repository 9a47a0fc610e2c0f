"""A version of transformers that has no class of a model type is not called checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fitcheck import estimate
from fitcheck.cli.main import run
from fitcheck.engine.checks import check_roots
from fitcheck.engine.loading import bundled_root, roots_of

MODEL = "Qwen/Qwen3.5-27B"
SAID = "transformers 4.57.6 has no class of model_type qwen3_5"


def test_a_version_without_the_class_warns_and_is_not_safe() -> None:
    report = estimate(MODEL, gpu="b200", transformers="4.57.6", batch_size=1, seq_len=128)
    assert report.warnings[0].startswith(SAID)
    assert SAID in report.unsettled and report.status == "uncertain"
    assert SAID in " ".join(report.explain().split())
    now = estimate(MODEL, gpu="b200", batch_size=1, seq_len=128)
    assert not any("no class" in text for text in (*now.warnings, *now.unsettled))
    assert report["parameters"] == now["parameters"]
    for version in ("5.0", "unknown"):
        later = estimate(MODEL, gpu="b200", transformers=version)
        assert not any("no class" in text for text in later.warnings)


@pytest.mark.parametrize(("kind", "absent"), [("ministral3", True), ("mistral", False)])
def test_the_type_of_the_text_part_counts_too(kind: str, absent: bool) -> None:
    text = {"model_type": kind, "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 9}
    config = {
        "model_type": "mistral3",
        "text_config": {**text, "num_attention_heads": 4, "num_key_value_heads": 4},
        "vision_config": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2},
    }
    told = estimate(config, gpu="b200", transformers="4.57.6").warnings
    says = "transformers 4.57.6 has no class of model_type ministral3"
    assert any(text.startswith(says) for text in told) is absent


def test_models_show_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "show", MODEL, "--stack", "transformers==4.57.6"]) == 0
    out, err = capsys.readouterr()
    assert SAID in out and "checked against its class" not in out and f"warning: {SAID}" in err
    assert run(["models", "show", MODEL]) == 0
    assert "checked against its class" in capsys.readouterr().out
    words = ["models", "show", MODEL, "--stack", "transformers=4.57.6", "--json"]
    assert run(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verified"] is False and data["warnings"][0].startswith(SAID)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{qwen3_5: {trans", "{qwen3_6: {trans", "does not claim model_type `qwen3_6`"),
        ("<=4.57.6", "before 5", "is not a version range"),
        ("{transformers:", "{transfomers:", "Did you mean `transformers`"),
    ],
)
def test_what_is_wrong_in_a_file_is_found(tmp_path: Path, old: str, new: str, says: str) -> None:
    place = "profiles/architectures/qwen3-5-multimodal.yaml"
    text = (Path(bundled_root()) / place).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(text.replace(old, new), encoding="utf-8")
    found = check_roots(roots_of([str(tmp_path)]))
    assert any(says in problem.message for problem in found), found
