"""`fitcheck models`: the catalogue as a list, and what a model resolves to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fitcheck.cli.main import run
from fitcheck.cli.models.drawing import letters, positions
from fitcheck.engine.sources.catalogue import Catalogue

MIXTURE = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [0, 1],
    "vocab_size": 1000,
}


def output(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = run(["models", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_every_word_has_to_be_in_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = output(capsys, "qwen3", "30b", "--json")
    names = [m["name"] for m in json.loads(out)["models"]]
    assert status == 0 and names
    assert all("qwen3" in n.lower() and "30b" in n.lower() for n in names)


def test_without_a_word_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = output(capsys)
    entries = list(Catalogue.bundled().entries())
    assert status == 0 and f"{len(entries)} models" in out
    assert len(entries) >= 150
    assert all(entry.hub_id in out for entry in entries if len(entry.hub_id) < 40)


def test_an_unknown_name_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = output(capsys, "meta-llama/Llama-3.1-8C")
    assert status == 1 and not out
    assert "Did you mean meta-llama/Llama-3.1-8B?" in err


def test_show_draws_every_layer_and_adds_up(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTURE))
    status, out, _ = output(capsys, "show", str(path))
    assert status == 0
    strip = next(line.split()[1] for line in out.splitlines() if line.strip().startswith("0  "))
    assert len(strip) == 6 and strip[0] == strip[1] != strip[2] and len(set(strip[2:])) == 1
    assert "8 experts, 2 chosen" in " ".join(out.split())
    _, out, _ = output(capsys, "show", str(path), "--json")
    data = json.loads(out)
    parts = data["parameters"]
    assert parts["active"] == parts["total"] - parts["expert"] * 6 // 8
    assert [g["places"] for g in data["layer_groups"]] == ["0-1", "2-5"]
    assert data["verified"] is True and data["stack"]["transformers"]


def test_show_takes_a_stack(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTURE))
    packed = []
    for version in ("4.57.6", "5.24.0"):
        stack = f"transformers={version}"
        _, out, _ = output(capsys, "show", str(path), "--json", "--stack", stack)
        packed.append(json.loads(out)["parameters"]["quantizable"])
    assert packed[0] > packed[1]  # experts are matrices of their own before 5.0


def test_show_says_what_is_uncertain(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**MIXTURE, "model_type": "unheard", "num_experts": None,
                                "num_experts_per_tok": None}))  # fmt: skip
    status, out, err = output(capsys, "show", str(path))
    assert status == 0 and "never checked" in out and "unheard was never checked" in err


def test_letters_are_told_apart() -> None:
    groups = [{"title": t} for t in ("2 full dense layers", "3 full moe layers", "1 full layer")]
    assert letters(groups) == ["F", "U", "L"]
    assert positions({"places": "0-2 5 7-8"}) == [0, 1, 2, 5, 7, 8]


def shown(capsys: pytest.CaptureFixture[str], path: Path, config: dict[str, object]) -> str:
    path.write_text(json.dumps(config), encoding="utf-8")
    status, out, _ = output(capsys, "show", str(path))
    assert status == 0
    return " ".join(out.split())


def test_the_width_of_one_expert_is_shown_and_of_what_every_token_meets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    text = shown(capsys, path, MIXTURE)
    assert "MLP 96" in text  # the two dense layers
    assert "MLP 32 in each of 8 experts, 2 chosen" in text and "for every token" not in text
    shared = {**MIXTURE, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 40}
    assert "MLP 32 in each of 8 experts, 2 chosen, MLP 40 for every token" in shown(
        capsys, path, shared
    )
    every = {"model_type": "llama4_text", "num_local_experts": 8, "intermediate_size": 48}
    every |= {"intermediate_size_mlp": 96, "num_key_value_heads": 2}
    llama = shown(capsys, path, {**MIXTURE, **every, "num_experts_per_tok": 1})
    assert "MLP 48 in each of 8 experts, 1 chosen, MLP 48 for every token" in llama


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("model", ["deepseek-ai/DeepSeek-V3", "google/gemma-3-4b-it"])
def test_no_figure_is_cut_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, model: str
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    wide = output(capsys, "show", model)[1]
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = output(capsys, "show", model)[1]
    assert "\u2026" not in narrow
    figures = [word for word in wide.split() if "," in word and word.replace(",", "").isdigit()]
    assert len(figures) > 6 and all(figure in narrow for figure in figures)
    table = narrow[narrow.index("part ") :].split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= width


ROUTERS = """\
id: router_parameters
title: Parameters of the routers
status: stable
unit: param
part: routers
counts: What chooses the experts.
order: 93
symbols:
  r_times: {from: "all_groups[].count", unit: layer, min: 1, integer: true, meaning: layers}
  r_size:
    {from: "all_groups[].parameters[].count", unit: "1", min: 0, integer: true, meaning: size}
  r_what: {from: "all_groups[].parameters[].part", meaning: what a parameter is}
cases:
  - id: sum
    expr: >-
      sum(r_times[g] * r_size[p] for g in all_groups for p in g.parameters
      if r_what[p] == "router")
    says: all of them
    evidence: [made-up]
claims: {nonnegative: true, rises_with: [r_times, r_size]}
evidence:
  made-up: {kind: assumption, where: this test, says: a part of its own}
examples:
  - name: one layer
    given:
      all_groups:
        - {r_times: 2, parameters: [{r_size: 8, r_what: router}, {r_size: 5, r_what: norm}]}
    expect: 16
"""


def test_a_new_part_is_a_new_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTURE), encoding="utf-8")
    (tmp_path / "rules" / "formulas").mkdir(parents=True)
    (tmp_path / "rules" / "formulas" / "router_parameters.yaml").write_text(ROUTERS)
    lines = output(capsys, "show", str(path))[1].splitlines()
    with_part = output(capsys, "show", str(path), "--rules", str(tmp_path / "rules"))
    assert with_part[0] == 0, with_part[2]
    rows = {line.split("  ")[0]: line.split() for line in with_part[1].splitlines()}
    assert rows["routers"][1] == "2,048"  # 4 layers, 64 wide, 8 experts
    named = [line.split("  ")[0] for line in with_part[1].splitlines() if "%" in line]
    assert named[-4:] == ["routers", "norms", "other matrices", "total"]  # by `order`
    assert not any(line.startswith("routers") for line in lines)
    shown = json.loads(
        output(capsys, "show", str(path), "--rules", str(tmp_path / "rules"), "--json")[1]
    )
    assert shown["parameters"]["router"] == 2048
