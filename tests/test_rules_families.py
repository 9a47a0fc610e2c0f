"""Architecture files and blocks in the workshop: shown, explained, changed, and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fitcheck import estimate
from fitcheck.cli.main import cli
from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.architecture import Architecture
from fitcheck.engine.checks import check_roots
from fitcheck.engine.checks.composition_checks import ancestors, whole
from fitcheck.engine.errors import FitcheckError, InputProblem, Problem
from fitcheck.engine.formula import Symbol
from fitcheck.engine.loading import Loader, bundled_root, roots_of
from fitcheck.engine.scope import Scope
from fitcheck.engine.workshop.block_page import blocks_of, users
from fitcheck.engine.workshop.pages import pages

RULES = rules_for()
BUNDLED = Path(bundled_root())
MODEL = "meta-llama/Llama-3.1-8B"


def call(*args: str, status: int = 0) -> str:
    found = CliRunner(env={"COLUMNS": "100"}).invoke(cli, ["rules", *args])
    assert found.exit_code == status, found.output
    return found.output


def architecture(name: str) -> Architecture:
    return next(a for a in RULES.architectures if a.id == name)


def changed(folder: Path, place: str, old: str, new: str) -> str:
    """A folder with one bundled file, some of its text exchanged."""
    text = (BUNDLED / place).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_text(text.replace(old, new), encoding="utf-8")
    return str(folder)


def more_norms(folder: Path) -> str:
    return changed(folder, "profiles/blocks/norms.yaml", "\n  norms: 2\n", "\n  norms: 4\n")


def biases(folder: Path) -> str:
    """A decoder whose query, key and value projections have biases."""
    place = "profiles/architectures/decoder.yaml"
    entry = "{use: attention, set: {qkv_bias: true}}"
    return changed(
        folder,
        place,
        "blocks: [norms, attention, gated_mlp]",
        f"blocks: [norms, {entry}, gated_mlp]",
    )


def diff(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("diff", folder, "--json"))
    return found


def problems(folder: Path) -> tuple[Problem, ...]:
    return check_roots(roots_of([str(folder)]))


# --- list, show, why -----------------------------------------------------------------------------


def test_list_has_the_blocks() -> None:
    files = json.loads(call("list", "--json"))["files"]
    found = {f["id"]: f for f in files if f["kind"] == "block"}
    assert set(found) == set(RULES.blocks)
    assert found["attention"]["file"] == "profiles/blocks/attention.yaml"


def test_show_of_a_block_says_who_uses_it() -> None:
    text = call("show", "attention")
    used = text[text.index("Is used by") :].split()
    assert all(a.id in used for a in users(RULES, "attention")) and "decoder" in used


def test_show_of_an_architecture_says_what_it_takes_from_others() -> None:
    text = call("show", "qwen3-moe")
    assert "  decoder" in text[text.index("\nExtends") :]
    blocks = text[text.index("\nBlocks") :]
    assert all(name in blocks for name in blocks_of(architecture("qwen3-moe").own))
    assert "  qwen3-moe" in call("show", "decoder").split("Is extended by")[1]


def test_why_explains_the_text_part_too(tmp_path: Path) -> None:
    text = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
    config = {"model_type": "llava", "text_config": text, "vision_config": {}}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    choices = json.loads(call("why", "architecture", str(file), "--json"))["choices"]
    assert choices[0]["result"] == "llava"
    assert choices[1]["title"].startswith("Architecture of the text part of")
    (held,) = [b for b in choices[1]["branches"] if b["holds"]]
    assert held["id"] == choices[1]["result"]


def test_why_does_not_list_every_file_of_another_model_type() -> None:
    text = call("why", "architecture", MODEL)
    assert "other files are for other model types" in text
    assert "qwen3-moe" not in text
    branches = json.loads(call("why", "architecture", MODEL, "--json"))["choices"][0]["branches"]
    claiming = {a.id for a in RULES.architectures if "matches" in a.own}
    assert {b["id"] for b in branches} == claiming


def test_abstract_files_claim_nothing() -> None:
    for found in RULES.architectures:
        if "matches" not in found.own:
            assert found.claims({"model_type": found.id}) is None


# --- pages ---------------------------------------------------------------------------------------


def test_the_page_of_an_architecture_links_what_it_takes_from_others() -> None:
    made, files = pages(RULES), {a.id: a for a in RULES.architectures}
    for found in RULES.architectures:
        page = made[f"profiles/architectures/{found.id}.md"]
        for name in ancestors(files, found):
            assert f"({name}.md)" in page
        for name in blocks_of(found.own):
            assert f"(../blocks/{name}.md)" in page
        for name in found.own.get("fields", {}):
            assert f"| `{name}` |" in page


def test_the_page_of_a_block_says_what_it_is_made_of_and_who_uses_it() -> None:
    made = pages(RULES)
    for name, source in RULES.blocks.items():
        page = made[f"profiles/blocks/{name}.md"]
        assert all(f"| `{n}` |" in page for n in source.data.get("defaults", {}))
        assert all(f"(../architectures/{a.id}.md)" in page for a in users(RULES, name))


# --- changed files -------------------------------------------------------------------------------


def test_a_changed_block_changes_the_estimate(tmp_path: Path) -> None:
    before, after = (
        estimate(MODEL, qlora=True),
        estimate(MODEL, qlora=True, rules=more_norms(tmp_path)),
    )
    norms = 2 * 32 * 4096
    assert after["parameters"] == before["parameters"] + norms
    assert after["weights"] > before["weights"]


def test_a_changed_architecture_changes_the_estimate(tmp_path: Path) -> None:
    before = estimate(MODEL, qlora=True)
    after = estimate(MODEL, qlora=True, rules=biases(tmp_path))
    assert after["parameters"] == before["parameters"] + 32 * (4096 + 2 * 1024)
    assert after["linear_parameters"] == before["linear_parameters"]


@pytest.mark.parametrize("change", [more_norms, biases])
def test_a_changed_family_is_never_safe(change: Any, tmp_path: Path) -> None:
    folder = change(tmp_path)
    (file,) = tmp_path.rglob("*.yaml")
    before = estimate("HuggingFaceTB/SmolLM2-135M", gpu="h100", qlora=True)
    after = estimate("HuggingFaceTB/SmolLM2-135M", gpu="h100", qlora=True, rules=folder)
    assert (before.status, after.status) == ("safe", "uncertain")
    assert f"changed file {file}" in after.unsettled


@pytest.mark.parametrize("change", [more_norms, biases])
def test_diff_shows_what_a_changed_family_moves(change: Any, tmp_path: Path) -> None:
    folder = change(tmp_path)
    (file,) = tmp_path.rglob("*.yaml")
    found = diff(folder)
    assert found["files"] == [{"file": file.relative_to(tmp_path).as_posix(), "how": "replaces"}]
    golden = next(c for c in found["configurations"] if c["id"] == "golden")
    assert {"weights", "total"} <= {m["name"] for m in golden["moves"]}


def test_a_block_is_ejected_by_its_id(tmp_path: Path) -> None:
    call("eject", str(tmp_path), "gated_mlp", "blocks/mamba2", "decoder")
    names = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.yaml")}
    assert names == {
        "profiles/blocks/gated_mlp.yaml",
        "profiles/blocks/mamba2.yaml",
        "profiles/architectures/decoder.yaml",
    }


def test_a_draft_block_makes_drafts_of_those_that_use_it(tmp_path: Path) -> None:
    place = "profiles/blocks/attention.yaml"
    folder = changed(tmp_path, place, "status: stable", "status: draft")
    rules = rules_for((folder,))
    options: Any = {"gpu": None, "vram_mib": None, "source": "catalogue", "flags": {}}
    prepared = prepare(rules, MODEL, **options)
    assert prepared.model.drafts == (f"profiles/architectures/{prepared.model.architecture}.yaml",)
    assert f"{prepared.model.drafts[0]} is a draft" in prepared.unsettled()
    assert prepare(RULES, MODEL, **options).model.drafts == ()


# --- checks --------------------------------------------------------------------------------------


def test_a_broken_block_is_not_blamed_on_those_that_use_it(tmp_path: Path) -> None:
    file = tmp_path / "profiles/blocks/attention.yaml"
    file.parent.mkdir(parents=True)
    for text in ("id: [", "id: attention\ntitle: x\nstatus: stable\nmodules: 3\n"):
        file.write_text(text, encoding="utf-8")
        assert {p.mark.path for p in problems(tmp_path)} == {str(file)}


def test_a_field_that_one_group_does_not_give_is_found_in_its_file(tmp_path: Path) -> None:
    place = "profiles/architectures/decoder.yaml"
    changed(tmp_path, place, "      hidden_size: hidden_size\n", "")
    found = [p for p in problems(tmp_path) if p.code == "F220"]
    assert found and all(p.mark.path == str(tmp_path / place) for p in found)
    assert any("gives no `hidden_size`" in p.message for p in found)


def test_a_missing_field_is_a_sentence_at_run_time() -> None:
    """Lint finds it first; a record of a test or of a library need not."""
    source = RULES.formulas["total"].source
    symbol = Symbol("w", "layer_groups[].wide", None, None, False, "width", (), source.mark())
    scope = Scope({"w": symbol}, {}, {}, {}, {}, "layer_groups")
    from fitcheck.engine import expression as ex

    value = scope.name(ex.Name(0, "w"))
    with pytest.raises(FitcheckError, match=r"`layer_groups\[\]\.wide` is read here"):
        value(None, {"": {"count": 1}})


LAYERS = """\
id: many
title: Many layers
status: draft
extends: decoder
matches: {model_type: [many]}
verified: [many]
layer_groups:
  - count: COUNT
    each: i
    fields: {mixer: '"full"', ffn: '"dense"', window: WINDOW, hidden_size: hidden_size}
    blocks: [norms, attention, gated_mlp]
"""
MANY = {
    "model_type": "many",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 99,
    "intermediate_size": 128,
}


@pytest.mark.parametrize(
    ("count", "window", "says"),
    [
        ("65_536", "i", "more than 1,024 kinds of layers"),
        ("65_537", "0", "is no number of layers"),
        ("2 / 3", "0", "is no number of layers"),
        ("-1", "0", "is no number of layers"),
    ],
)
def test_more_layers_than_anybody_builds(
    count: str, window: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "profiles/architectures/many.yaml"
    file.parent.mkdir(parents=True)
    text = LAYERS.replace("COUNT", count).replace("WINDOW", window)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputProblem, match=says):
        estimate(MANY, rules=str(tmp_path))


def test_groups_may_not_have_more_layers_together(tmp_path: Path) -> None:
    file = tmp_path / "profiles/architectures/many.yaml"
    file.parent.mkdir(parents=True)
    text = LAYERS.replace("COUNT", "40_000").replace("WINDOW", "0")
    file.write_text(f"{text}{text[text.index('  - count') :]}", encoding="utf-8")
    with pytest.raises(InputProblem, match="more than 65,536 layers one by one"):
        estimate(MANY, rules=str(tmp_path))


def test_a_condition_without_an_answer_is_a_sentence(tmp_path: Path) -> None:
    """1,000 kinds of layers with 120 modules are more rows than one aggregate may have."""
    file = tmp_path / "profiles/architectures/many.yaml"
    file.parent.mkdir(parents=True)
    text = LAYERS.replace("COUNT", "1_000").replace("WINDOW", "i")
    text = text.replace("attention,", f"{'attention, ' * 30}")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FitcheckError, match="more than 100,000 rows in one aggregate in"):
        estimate(MANY, rules=str(tmp_path))


def test_every_architecture_can_be_put_together() -> None:
    rules = Loader(roots_of()).load()
    modelled = [a for a in rules.architectures if "refuse" not in a.own]
    assert all(whole(a) is not None for a in modelled)
    assert all(a.data["status"] == "stable" for a in modelled)
