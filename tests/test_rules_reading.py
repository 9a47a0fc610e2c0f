"""`fitcheck rules list`, `show`, `why` and `graph`: a reader finds what is behind a number."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fitcheck.cli.main import cli
from fitcheck.cli.rules import COMMANDS
from fitcheck.cli.rules.layout import columns
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.workshop import drawing, graph, index
from fitcheck.engine.workshop.everything import everything

RULES = rules_for()
T4 = ["Qwen/Qwen2.5-7B", "--gpu", "t4", "--qlora", "--precision", "fp16"]


def call(*args: str, status: int = 0) -> str:
    """What `fitcheck rules ...` prints."""
    found = CliRunner(env={"COLUMNS": "100"}).invoke(cli, ["rules", *args])
    assert found.exit_code == status, found.output
    return found.output


def why(*args: str) -> list[dict[str, Any]]:
    choices: list[dict[str, Any]] = json.loads(call("why", *args, "--json"))["choices"]
    return choices


# --- the group -----------------------------------------------------------------------------------


def test_without_a_command_the_help_is_printed() -> None:
    text = call(status=2)
    assert all(f"\n  {name} " in text for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    text = call(name, "--help")
    assert text.startswith(f"Usage: fitcheck rules {name}")
    assert len(text.split("\n")) > 5


def test_an_unknown_command_suggests_one() -> None:
    assert "Did you mean eject?" in call("ejct", status=2)
    assert "There are list, show" in call("xyz", status=2)


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("fitcheck ru", "rules"),
        ("fitcheck rules ej", "eject"),
        ("fitcheck rules why optim", "optimizer"),
        ("fitcheck rules show t4-fl", "t4-flash"),
        ("fitcheck rules explain f20", "F204"),
    ],
)
def test_names_complete(typed: str, word: str) -> None:
    asked = {"_FITCHECK_COMPLETE": "bash_complete", "COMP_WORDS": typed}
    asked["COMP_CWORD"] = str(len(typed.split()) - 1)
    found = CliRunner(env=asked).invoke(cli, [])
    assert f"plain,{word}" in found.output.split()


# --- list and show -------------------------------------------------------------------------------


def test_list_names_every_rule_file() -> None:
    text = call("list")
    names = [*RULES.formulas, *(s.id for s in RULES.statuses)]
    families = {"architectures": [a.id for a in RULES.architectures], "blocks": RULES.blocks}
    twice = set(families["architectures"]).intersection(families["blocks"])
    names += [f"{k}/{n}" if n in twice else n for k, ids in families.items() for n in ids]
    names += [f"{kind}/{p.id}" for kind, ps in RULES.profiles.items() for p in ps]
    for mode, rules in RULES.modes.items():
        names += [*rules.formulas, *(f"statuses/{mode}/{s.id}" for s in rules.statuses)]
        names += [f"{kind}/{mode}/{p.id}" for kind, ps in rules.profiles.items() for p in ps]
    words = set(text.split())
    assert not [name for name in names if name not in words]
    assert re.search(r"\d+ cards", text)


def test_list_as_json_says_where_each_file_lies() -> None:
    data = json.loads(call("list", "--json"))
    ids = {e["id"] for e in data["files"] if e["kind"] in ("component", "quantity")}
    assert ids == set(everything(RULES).formulas)
    assert all(Path(e["path"]).is_file() and not e["changed"] for e in data["files"])
    assert data["cards"] > 20 and data["models"] > 20


@pytest.mark.parametrize("name", RULES.formulas)
def test_show_renders_every_formula(name: str) -> None:
    text, formula = call("show", name), RULES.formulas[name]
    assert formula.title in text
    assert all(part in text for part in (*(c.id for c in formula.cases), *formula.symbols))
    assert all(proof in text for proof in formula.evidence)


@pytest.mark.parametrize("kind", ["profile", "status", "architecture", "block", "vocabulary"])
def test_show_prints_the_other_files(kind: str) -> None:
    entry = next(e for e in index.entries(RULES) if e.kind == kind)
    assert entry.title in call("show", entry.name)


def test_show_prints_the_file_itself() -> None:
    entry = index.find(RULES, "total")
    assert call("show", "total", "--file") == Path(entry.path).read_text(encoding="utf-8")


def test_show_finds_a_card_by_any_of_its_names() -> None:
    assert call("show", "rtx 4090") == call("show", "4090") == call("show", "gpus/4090")


def test_an_ambiguous_id_names_both_files() -> None:
    assert "overhead/default and reserve/default" in call("show", "default", status=2)


def test_an_unknown_id_suggests_one() -> None:
    assert "Did you mean `optimizer`?" in call("show", "optimiser", status=2)


def test_entries_know_the_files_of_an_overlay(tmp_path: Path) -> None:
    text = Path(index.find(RULES, "total").path).read_text(encoding="utf-8")
    (tmp_path / "total.yaml").write_text(text, encoding="utf-8")
    lines = call("list", "--rules", str(tmp_path)).split("\n")
    (line,) = [line for line in lines if line.startswith("  total ")]
    assert f"from {tmp_path}" in line


# --- why -----------------------------------------------------------------------------------------


def test_why_says_which_case_holds_and_what_fails_in_the_others() -> None:
    (choice,) = why("optimizer", "--no-lora")
    held = [b["id"] for b in choice["branches"] if b["holds"]]
    assert held == ["state-and-master"]
    other = next(b for b in choice["branches"] if b["id"] == "state-only")
    assert [(p["text"], p["holds"]) for p in other["parts"]] == [
        ("any of", None),
        ("lora", False),
        ('precision == "fp32"', False),
    ]
    assert other["parts"][2]["values"] == [["precision", "bf16"]]


def test_why_prints_conditions_with_their_values() -> None:
    text = call("why", "optimizer", "--no-lora")
    assert "holds     state-and-master  [formulas/optimizer.yaml:" in text
    assert re.search(r"no +lora +\(lora = false\)", text)


@pytest.mark.parametrize("name", RULES.formulas)
def test_exactly_one_case_holds_of_every_formula(name: str) -> None:
    for choice in why(name, *T4):
        if choice["kind"] == "cases" and choice["branches"]:
            assert sum(b["holds"] for b in choice["branches"]) == 1
        assert not choice["result"].startswith("no value")


def test_why_explains_profiles_by_the_keys_that_fail() -> None:
    (choice,) = why("reserve", *T4)
    (held,) = [b["id"] for b in choice["branches"] if b["holds"]]
    assert held == choice["result"]
    text = call("why", "reserve", *T4, "--no-lora", "--quant", "none")
    assert re.search(r"no +lora: true +\(lora = false\)", text)


def test_why_of_a_formula_adds_the_profiles_it_reads() -> None:
    kinds = [c["kind"] for c in why("overhead", *T4)]
    assert kinds == ["cases", "profiles"]


def test_why_explains_the_verdict() -> None:
    (choice,) = why("statuses", *T4)
    assert sum(b["holds"] for b in choice["branches"]) == 1
    assert why("safe", *T4) == [choice]


def test_why_explains_which_architecture_claims_a_config(tmp_path: Path) -> None:
    (choice,) = why("architectures")
    (held,) = [b for b in choice["branches"] if b["holds"]]
    assert held["id"] == choice["result"]
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"model_type": "t5", "d_model": 8, "is_encoder_decoder": True}), encoding="utf-8"
    )
    (refused,) = why("architectures", str(config))
    assert refused["result"] == "refused"
    assert any(b["holds"] and b["says"] for b in refused["branches"])


def test_why_explains_a_search_by_its_certificate() -> None:
    (choice,) = why("max_batch_size", "--qlora", "--gpu", "h100")
    assert re.search(r"it holds at [\d,]+, and not at [\d,]+", choice["note"])


def test_why_of_a_file_without_cases_says_so() -> None:
    assert "fitcheck rules show 4090" in call("why", "4090", status=2)


def test_why_reads_overlays(tmp_path: Path) -> None:
    text = Path(index.find(RULES, "gradients").path).read_text(encoding="utf-8")
    (tmp_path / "gradients.yaml").write_text(
        text.replace("id: full\n", "id: whole\n"), encoding="utf-8"
    )
    (choice,) = why("gradients", "--no-lora", "--rules", str(tmp_path))
    assert [b["id"] for b in choice["branches"] if b["holds"]] == ["whole"]


# --- graph ---------------------------------------------------------------------------------------


def test_the_graph_draws_every_quantity_below_what_it_reads() -> None:
    found = graph.graph(RULES)
    rows = graph.layers(found)
    level = {name: i for i, row in enumerate(rows) for name in row}
    assert set(level) == set(RULES.formulas)
    assert all(level[r] < level[n] for n, reads in found.reads.items() for r in reads)


def test_the_graph_of_one_quantity_has_what_it_needs_and_what_needs_it() -> None:
    found = graph.graph(RULES, ["gradients"])
    assert {"gradients", "trainable_parameters", "total"} <= set(found.reads)
    assert "optimizer" not in found.reads


def test_no_boxes_overlap_and_the_drawing_is_the_same_every_time() -> None:
    found = graph.graph(RULES)
    svg = drawing.to_svg(found, lambda name: f"{name}.md")
    assert svg == drawing.to_svg(found, lambda name: f"{name}.md")
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        {k: int(r.get(k, "0")) for k in ("x", "y", "width", "height")}
        for r in root.iter(f"{space}rect")
    ]
    assert len(boxes) == len(RULES.formulas)
    for row in {b["y"] for b in boxes}:
        line = sorted((b for b in boxes if b["y"] == row), key=lambda b: b["x"])
        assert all(a["x"] + a["width"] <= b["x"] for a, b in pairwise(line))
    width, height = int(root.get("width", "0")), int(root.get("height", "0"))
    assert all(b["x"] >= 0 and b["x"] + b["width"] <= width for b in boxes)
    assert all(b["y"] >= 0 and b["y"] + b["height"] <= height for b in boxes)


def test_the_graph_as_text_dot_and_file(tmp_path: Path) -> None:
    assert "total  <-  phase_bytes" in call("graph", "total")
    dot = call("graph", "--format", "dot")
    assert dot.startswith("digraph rules {") and '"phase_bytes" -> "total";' in dot
    target = tmp_path / "new" / "graph.svg"
    call("graph", "--format", "svg", "--output", str(target))
    assert target.read_text(encoding="utf-8").startswith("<svg ")


def test_the_graph_of_an_unknown_quantity_suggests_one() -> None:
    assert "Did you mean `total`?" in call("graph", "totl", status=2)


def test_a_cycle_is_no_hang() -> None:
    with pytest.raises(InputProblem, match="a, b"):
        graph.layers(graph.Graph({"a": ["b"], "b": ["a"]}, {}, frozenset()))


# --- layout --------------------------------------------------------------------------------------


def test_columns_align_and_wrap_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [("a", "1", "one two three four five six seven eight nine ten eleven"), ("bb", "22", "")]
    assert columns(rows, 2, {1}) == [
        "  a    1  one two three four five six seven eight nine ten",
        "          eleven",
        "  bb  22",
    ]
    assert columns([("a", "", "x"), ("b", "", "y")]) == ["a  x", "b  y"]
