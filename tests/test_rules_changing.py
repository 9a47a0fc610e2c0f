"""`fitcheck rules eject`, `new` and `diff`, and the folders that every command works on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fitcheck.cli.main import cli
from fitcheck.engine.api import rules_for
from fitcheck.engine.loading import bundled_root, folders_of_mode, roots_of
from fitcheck.engine.workshop.everything import everything
from fitcheck.engine.workshop.examples import run_examples
from fitcheck.engine.workshop.opened import open_rules
from fitcheck.engine.workshop.prove import PROVED, prove
from fitcheck.engine.workshop.reference import configurations, evaluate
from fitcheck.engine.workshop.skeletons import kinds

RULES = rules_for()
BUNDLED = Path(bundled_root())
MODEL = "meta-llama/Llama-3.1-8B"


def call(*args: str, status: int = 0, env: dict[str, str] | None = None) -> str:
    found = CliRunner(env={"COLUMNS": "100", **(env or {})}).invoke(cli, [*args])
    assert found.exit_code == status, found.output
    return found.output


def rules(*args: str, status: int = 0) -> str:
    return call("rules", *args, status=status)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def diff(*args: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(rules("diff", *args, "--json"))
    return data


# --- eject ---------------------------------------------------------------------------------------


def test_eject_copies_every_file_that_an_overlay_can_replace(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "mine"
    rules("eject", str(target))
    copied = {p.relative_to(target).as_posix(): p for p in target.rglob("*") if p.is_file()}
    folders = ["formulas", "gpus", "profiles/statuses", "profiles/architectures"]
    folders += ["profiles/blocks", "profiles/importers"]
    folders += [f"profiles/{kind}" for kind in RULES.profiles]
    folders += [f for mode in RULES.modes for f in folders_of_mode(RULES.roots, mode)]
    assert set(copied) == {f"{f}/{p.name}" for f in folders for p in (BUNDLED / f).glob("*.yaml")}
    assert all(p.read_bytes() == (BUNDLED / name).read_bytes() for name, p in copied.items())
    assert "Every file of the folder is as bundled." in rules("diff", str(target))


def test_eject_copies_named_files_by_id_name_and_alias(tmp_path: Path) -> None:
    rules("eject", str(tmp_path), "optimizer", "overhead/default", "rtx 4090", "safe")
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.yaml")} == {
        "formulas/optimizer.yaml",
        "profiles/overhead/default.yaml",
        "gpus/4090.yaml",
        "profiles/statuses/safe.yaml",
    }


def test_eject_never_overwrites_without_force(tmp_path: Path) -> None:
    mine = tmp_path / "formulas" / "optimizer.yaml"
    mine.parent.mkdir()
    mine.write_text("mine\n", encoding="utf-8")
    text = rules("eject", str(tmp_path), "gradients", "optimizer", status=2)
    assert "already has formulas/optimizer.yaml" in text and "Nothing was written" in text
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["optimizer.yaml"]
    assert mine.read_text(encoding="utf-8") == "mine\n"
    rules("eject", str(tmp_path), "gradients", "optimizer", "--force")
    assert mine.read_bytes() == (BUNDLED / "formulas/optimizer.yaml").read_bytes()


def test_eject_of_an_unknown_id_writes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    assert "Did you mean `optimizer`?" in rules("eject", str(target), "optimiser", status=2)
    assert not target.exists()


def test_eject_into_a_file_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("mine", encoding="utf-8")
    assert "is a file" in rules("eject", str(target), "total", status=2)
    assert target.read_text(encoding="utf-8") == "mine"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    replace = os.replace

    def full(source: str, target: str) -> None:
        if moved:
            raise OSError(28, "No space left on device", target)
        moved.append(target)
        replace(source, target)

    monkeypatch.setattr("fitcheck.engine.workshop.copying.os.replace", full)
    assert "No space left" in rules("eject", str(tmp_path / "a" / "b"), status=2)
    assert list(tmp_path.iterdir()) == []


# --- new -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds(RULES))
def test_a_skeleton_lints_clean_as_a_draft(kind: str, tmp_path: Path) -> None:
    rules("new", kind, "mine_1", "--to", str(tmp_path))
    (file,) = tmp_path.rglob("*.yaml")
    assert "\nstatus: draft" in file.read_text(encoding="utf-8")
    opened = open_rules(roots_of([str(tmp_path)]))
    assert opened.problems == ()
    if kind in ("component", "quantity"):
        formula = opened.rules.formula("mine_1")
        assert [t.problem for t in run_examples(opened.rules, formula)] == [""]
        assert {p.verdict for p in prove(opened.rules, formula)} == {PROVED}


def test_a_new_component_is_in_the_total_at_once(tmp_path: Path) -> None:
    rules("new", "component", "mine", "--to", str(tmp_path))
    moved = {
        c["id"]: {m["name"]: m for m in c["moves"]} for c in diff(str(tmp_path))["configurations"]
    }
    for configuration in (moved[c.id] for c in configurations() if c.mode is None):
        assert configuration["mine"]["before"] is None
        assert configuration["total"]["difference"] == configuration["mine"]["after"] > 0


def test_a_new_card_can_be_named_at_once(tmp_path: Path) -> None:
    rules("new", "card", "my-card", "--to", str(tmp_path))
    text = call(MODEL, "--gpu", "my card", "--qlora", "--rules", str(tmp_path), "--json", status=1)
    assert json.JSONDecoder().raw_decode(text)[0]["gpu"]["key"] == "my-card"


def test_a_profile_may_be_asked_for_by_its_place(tmp_path: Path) -> None:
    rules("new", "profile", "overhead/mine", "--to", str(tmp_path))
    assert (tmp_path / "profiles/overhead/mine.yaml").is_file()
    assert "overhead/mine or reserve/mine" in rules("new", "profile", "mine", status=2)


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("architecture", "x", "is made from a config"),
        ("status", "x", "exactly one holds"),
        ("model", "x", "not from rule folders"),
        ("compnent", "x", "Did you mean `component`?"),
        ("component", "total", "is there already"),
        ("card", "4090", "is there already"),
        ("component", "if", "a word of the formula language"),
        ("component", "../x", "an id is one word"),
        ("profile", "../../x", "There is no skeleton for `profile`"),
        ("profile", "overhead/..", "cannot be an id"),
        ("quantity", "1x", "cannot be an id"),
        ("card", "A 100", "cannot be an id"),
    ],
)
def test_what_has_no_skeleton(kind: str, name: str, says: str, tmp_path: Path) -> None:
    assert says in rules("new", kind, name, "--to", str(tmp_path), status=2)
    assert list(tmp_path.iterdir()) == []


def test_new_never_overwrites(tmp_path: Path) -> None:
    rules("new", "card", "mine", "--to", str(tmp_path))
    assert "is there already" in rules("new", "card", "mine", "--to", str(tmp_path), status=2)


# --- diff ----------------------------------------------------------------------------------------


def test_diff_says_what_moves_and_by_how_much(tmp_path: Path) -> None:
    rules("eject", str(tmp_path), "overhead/default")
    edit(tmp_path / "profiles/overhead/default.yaml", "value: 500 MiB", "value: 600 MiB")
    found = diff(str(tmp_path))
    assert found["files"] == [{"file": "profiles/overhead/default.yaml", "how": "replaces"}]
    golden = next(c for c in found["configurations"] if c["id"] == "golden")
    moves = {m["name"]: m["difference"] for m in golden["moves"]}
    assert moves["overhead"] == moves["total"] == 100 << 20
    assert "weights" not in moves
    t4 = next(c for c in found["configurations"] if c["id"] == "t4")
    assert t4["moves"] == []
    text = rules("diff", str(tmp_path))
    assert "+100 MiB" in text and "Nothing moves in: t4" in text


def test_diff_keeps_verdicts_apart_from_the_cap_of_overlays(tmp_path: Path) -> None:
    rules("new", "quantity", "mine", "--to", str(tmp_path))
    verdicts = [c["verdict"] for c in diff(str(tmp_path))["configurations"]]
    assert all(v["before"] == v["after"] for v in verdicts)
    assert len({v["before"] for v in verdicts}) > 1


def test_diff_names_the_cases_that_no_configuration_uses(tmp_path: Path) -> None:
    rules("eject", str(tmp_path), "gradients")
    file = tmp_path / "formulas/gradients.yaml"
    edit(file, "flags: [lora]", "flags: [lora, precision]")
    edit(file, "    when: not lora\n", '    when: not lora and precision != "fp16"\n')
    edit(file, "lora: false,", "lora: false, precision: bf16,")
    text = file.read_text(encoding="utf-8")
    start, end = text.index("  - id: full\n"), text.index("claims:")
    half = text[start:end].replace("id: full", "id: half").replace("!=", "==")
    given = "{lora: false, precision: fp16, trainable_parameters: 10, compute_bytes: 2}"
    example = f"  - {{name: half, given: {given}, expect: 20}}\n"
    file.write_text(f"{text[:end]}{half}{text[end:]}{example}", encoding="utf-8")
    text = rules("diff", str(tmp_path))
    assert "No reference configuration uses case half of gradients:" in text
    assert "No number moves in" in text


def test_diff_says_where_a_run_is_refused(tmp_path: Path) -> None:
    rules("eject", str(tmp_path), "gradients")
    with (tmp_path / "formulas/gradients.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "limits:\n  - {id: no-full, level: refuse, direction: unknown, when: not lora, "
            "says: full fine-tuning is not modelled here}\n"
        )
    text = rules("diff", str(tmp_path))
    assert "is now refused (full fine-tuning is not modelled here)" in text
    assert "Nothing moves in: golden, t4" in text


def test_diff_compares_with_other_overlays_below(tmp_path: Path) -> None:
    low, high = tmp_path / "low", tmp_path / "high"
    for folder, size in ((low, 600), (high, 700)):
        rules("eject", str(folder), "overhead/default")
        edit(folder / "profiles/overhead/default.yaml", "value: 500 MiB", f"value: {size} MiB")
    golden = diff(str(high), "--rules", str(low))["configurations"][0]
    assert {m["name"]: m["difference"] for m in golden["moves"]}["total"] == 100 << 20


def test_a_broken_folder_could_not_be_compared(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("id: bad\n", encoding="utf-8")
    text = rules("diff", str(tmp_path), status=2)
    assert "the rules cannot be used" in text and "F107" in text


# What no configuration can use: the catalogue has no headers of weight files, which `stored`
# is for, no file of an engine says that it cuts its cache into two pools, and `here` is a card of
# the machine that the configurations are evaluated on.
OUT_OF_REACH = {
    ("embedding_bytes", "stored"),
    ("head_bytes", "stored"),
    ("model_weights", "stored"),
    ("layer_windows", "share"),
    ("usable", "here"),
}


def test_the_reference_configurations_use_every_case_they_can() -> None:
    outcomes = {c.id: evaluate(RULES, c) for c in configurations()}
    assert not [o.refused for o in outcomes.values() if o.refused]
    used = frozenset[tuple[str, str]]().union(*(o.cases for o in outcomes.values()))
    cases = {(f.id, c.id) for f in everything(RULES).formulas.values() for c in f.cases}
    assert cases - used == OUT_OF_REACH


# --- folders -------------------------------------------------------------------------------------


def more(folder: Path, size: int) -> str:
    rules("eject", str(folder), "overhead/default")
    edit(folder / "profiles/overhead/default.yaml", "value: 500 MiB", f"value: {size} MiB")
    return str(folder)


def overhead(*args: str, env: dict[str, str] | None = None) -> int:
    found = CliRunner(env=env).invoke(cli, [MODEL, "--qlora", "--json", *args])
    value = json.JSONDecoder().raw_decode(found.output)[0]["memory_bytes"]["overhead"]
    assert isinstance(value, int)
    return value


def test_folders_of_the_environment_are_below_those_of_the_line(tmp_path: Path) -> None:
    first, second = more(tmp_path / "a", 600), more(tmp_path / "b", 700)
    bundled = overhead()
    both = os.pathsep.join([first, "", second])
    assert overhead(env={"FITCHECK_RULES": first}) == bundled + (100 << 20)
    assert overhead(env={"FITCHECK_RULES": both}) == bundled + (200 << 20)
    assert overhead("--rules", first, env={"FITCHECK_RULES": second}) == bundled + (100 << 20)
    assert overhead(env={"FITCHECK_RULES": ""}) == bundled


def test_every_command_reads_the_folders_of_the_environment(tmp_path: Path) -> None:
    env = {"FITCHECK_RULES": more(tmp_path / "a", 600)}
    assert "600 MiB" in call("rules", "show", "overhead/default", env=env)
    golden = json.loads(call("rules", "diff", more(tmp_path / "b", 700), "--json", env=env))
    moves = golden["configurations"][0]["moves"]
    assert {m["name"]: m["difference"] for m in moves}["total"] == 100 << 20


def test_a_broken_folder_stops_an_estimate(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("id: bad\n", encoding="utf-8")
    env = {"FITCHECK_RULES": str(tmp_path)}
    assert "F107" in call(MODEL, status=2, env=env)
    missing = {"FITCHECK_RULES": str(tmp_path / "none")}
    for args in ((MODEL,), ("rules", "list"), ("rules", "lint"), ("rules", "why", "total")):
        assert "FITCHECK_RULES names" in call(*args, status=2, env=missing)
