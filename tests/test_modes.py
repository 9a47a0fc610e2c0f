"""Modes in general: folders that make another kind of run, and what is checked about them."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fitcheck import InputProblem, RuleFileError, estimate
from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run
from fitcheck.engine.api import rules_for
from fitcheck.engine.checks import check_all, check_roots
from fitcheck.engine.loading import Loader, files_of, load_rules, roots_of, rule_folders
from fitcheck.engine.modes import bundled_commands, homes, modes_of
from fitcheck.engine.workshop.everything import everything
from fitcheck.engine.workshop.index import find

LLAMA = "meta-llama/Llama-3.1-8B"
MODE = """\
id: counting
title: Weights and nothing else
status: stable
command: weigh
block: weighing
about: Say how large MODEL is.
groups: [Weighing, Library versions]
takes:
  quant: {group: Weighing}
  precision: {default: fp16, group: Weighing}
  transformers: {}
flags:
  copies: {option: --copies, aliases: [--times], group: Weighing, type: integer, unit: sequence, min: 1, max: 64, default: 1, help: How often.}
conflicts:
  - {id: many, when: copies > 32 and precision == "fp32", says: "--copies {copies} is not modelled in fp32."}
phases: {there: it is there}
reads: [weighed]
facts:
  - {label: weight, says: "{weighed} in all"}
  - {label: never, when: weighed < 0, says: "not shown"}
"""  # noqa: E501
WEIGHED = """\
id: weighed
title: Weight of the copies
status: stable
unit: byte
live: [there]
counts: Every copy.
json: {memory_mib.total: MiB}
reads: [parameters, compute_bytes]
symbols:
  n: {from: flags.copies, unit: sequence, min: 1, integer: true, meaning: copies}
cases:
  - {id: all, expr: n * parameters * compute_bytes, says: "{n} copies", evidence: [plain]}
claims: {nonnegative: true, rises_with: [n, parameters, compute_bytes]}
evidence:
  plain: {kind: derivation, where: here, says: as it is}
examples:
  - {name: two, given: {n: 2, parameters: 3, compute_bytes: 2}, expect: 12}
"""
STATUS = """\
id: weighed_it
title: WEIGHED
status: stable
exit_code: 1
safe: false
reads: [weighed]
when: true
"""
FILES = {
    "formulas/counting/mode.yaml": MODE,
    "formulas/counting/weighed.yaml": WEIGHED,
    "profiles/statuses/counting/weighed_it.yaml": STATUS,
}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("FITCHECK_RULES", raising=False)


def folder(path: Path, *changes: tuple[str, str, str]) -> str:
    """The files of the mode `counting`; a change replaces one text in the file of that name."""
    for place, text in FILES.items():
        for stem, old, new in changes:
            if stem == Path(place).stem:
                assert old in text
                text = text.replace(old, new)
        target = path / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return str(path)


def call(*words: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = guarded(lambda: run([*words]))
    return status, out.getvalue(), err.getvalue()


def test_a_mode_is_made_of_files_alone(tmp_path: Path) -> None:
    rules = folder(tmp_path)
    assert check_roots(roots_of([rules])) == ()
    report = estimate(LLAMA, mode="counting", rules=rules, source="catalogue", copies=3)
    assert report["weighed"] == 3 * 2 * report["parameters"]
    assert {"weights", "total"}.isdisjoint(report)
    assert report.facts() == [("weight", "45,950 MiB in all")]
    status, out, err = call("weigh", LLAMA, "--times", "3", "--json", "--rules", rules)
    data = json.loads(out)
    assert (status, data["verdict"]["status"], err) == (1, "weighed_it", "")
    assert data["weighing"] == {"quantization": "none", "precision": "fp16", "copies": 3}
    assert data["memory_mib"] == {"total": 45949.52}
    status, out, err = call(
        "weigh", LLAMA, "--copies", "33", "--precision", "fp32", "--rules", rules
    )
    assert (status, out) == (2, "") and "--copies 33 is not modelled in fp32." in err
    assert "WEIGHED" in call("weigh", LLAMA, "--rules", rules)[1]
    assert "--times" in call("weigh", "--help", "--rules", rules)[1]


def test_without_its_folder_there_is_no_such_command() -> None:
    status, _, err = call("weigh", "--json")
    assert status == 2 and "weigh" in err  # a model of that name, which is nowhere


def test_no_other_mode_reads_the_files_of_one(tmp_path: Path) -> None:
    rules = folder(tmp_path, ("weighed", "n * parameters", "n * parameter"))
    assert estimate(LLAMA, rules=rules, source="catalogue", qlora=True)["total"]
    assert estimate(LLAMA, mode="serving", rules=rules, source="catalogue")["serving_total"]
    with pytest.raises(RuleFileError, match="parameter"):
        estimate(LLAMA, mode="counting", rules=rules, source="catalogue")
    assert {p.code for p in check_roots(roots_of([rules]))} >= {"F201"}


Changes = list[tuple[str, str, str]]  # file, what stands there, what is put in its place
WRONG: list[tuple[Changes, list[tuple[str, str]]]] = [
    (
        [
            ("mode", "id: counting", "id: weighing"),
            ("mode", "command: weigh", "command: models"),
            ("mode", "option: --copies", "option: --gpu"),
            ("mode", "aliases: [--times]", "aliases: [--precision]"),
            ("mode", "default: fp16", "default: fp8"),
            ("mode", "reads: [weighed]", "reads: [weighed]\nfit: [weighed]"),
            ("mode", 'says: "{weighed} in', 'says: "{weight} in'),
            ("mode", "when: weighed < 0", "when: weigh < 0"),
        ],
        [
            ("F103", "id of its mode"),
            ("F706", "a subcommand already"),
            ("F106", "of the program itself"),
            ("F106", "already"),
            ("F106", "not modelled"),
            ("F216", "no search"),
            ("F211", "weight"),
            ("F201", "weigh"),
        ],
    ),
    ([("mode", "command: weigh", "command: infer")], [("F706", "a subcommand already")]),
    ([("mode", "  transformers: {}", "  transformer: {}")], [("F201", "no flag of flags.yaml")]),
    ([("mode", "reads: [weighed]", "reads: [weight]")], [("F201", "no file defines it")]),
    ([("mode", "takes:", "take:")], [("F101", "not a field of a mode file")]),
    ([("mode", "phases: {there: it is there}\n", "")], [("F107", "phases")]),
    (
        [
            ("weighed", "live: [there]", "live: [forward]"),
            ("weighed_it", "exit_code: 1", "exit_code: 0"),
            ("weighed_it", "when: true", "when: weighed > 0"),
        ],
        [("F214", "no phase"), ("F217", "Exit code 0"), ("F302", "No status holds")],
    ),
    ([("weighed", "id: weighed", "id: total")], [("F103", "The file is called weighed")]),
]


@pytest.mark.parametrize(("changes", "expected"), WRONG, ids=lambda x: x[0][-1])
def test_what_is_wrong_with_a_mode_is_said(
    changes: Changes, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    roots = roots_of([folder(tmp_path, *changes)])
    _, problems = check_all(Loader(roots, mode="counting"))
    for code, says in expected:
        found = [p for p in problems if p.code == code and says in p.message]
        assert found, (code, says, problems)
        assert str(tmp_path) in found[0].mark.path


def test_an_id_belongs_to_one_quantity_of_all_modes(tmp_path: Path) -> None:
    rules = folder(tmp_path)
    (tmp_path / "formulas/counting/total.yaml").write_text(
        WEIGHED.replace("id: weighed", "id: total").replace("json: {memory_mib.total: MiB}\n", ""),
        encoding="utf-8",
    )
    (problem,) = [p for p in check_roots(roots_of([rules])) if p.code == "F706"]
    assert "formulas/total.yaml has this id already" in problem.message


def test_modes_share_what_they_read() -> None:
    training, serving = rules_for(), rules_for(mode="serving")
    assert training.mode is None and serving.mode is not None
    assert {"parameters", "cache_bytes", "packed_bytes"} <= training.formulas.keys()
    assert {"parameters", "packed_bytes"} <= serving.formulas.keys()
    assert {"activations", "total", "lora"}.isdisjoint(serving.formulas)
    assert homes().keys() == serving.formulas.keys() - training.formulas.keys()
    assert bundled_commands() == {"infer": "serving"}
    with pytest.raises(InputProblem, match="There is no mode `train`"):
        load_rules(mode="train")


def test_training_reads_no_file_of_a_mode(tmp_path: Path) -> None:
    program = (
        "import builtins, json, sys\n"
        "seen, opened = [], builtins.open\n"
        "def watched(path, *rest, **more):\n"
        "    seen.append(str(path))\n"
        "    return opened(path, *rest, **more)\n"
        "builtins.open = watched\n"
        "from fitcheck import estimate\n"
        f"estimate({LLAMA!r}, source='catalogue', qlora=True).to_dict()\n"
        "print([p for p in seen if 'serving' in p])\n"
        "print([m for m in sys.modules if m.endswith('engine.modes')])\n"
    )
    environment = {"FITCHECK_NO_CACHE": "1", "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"], done.stderr


def test_a_report_of_a_mode_survives_pickling() -> None:
    report = estimate(LLAMA, mode="serving", source="catalogue", concurrent=3)
    again = pickle.loads(pickle.dumps(report))
    assert again.to_dict() == report.to_dict()


def test_the_workshop_finds_files_of_modes() -> None:
    rules = rules_for()
    whole = everything(rules)
    assert {"kv_cache", "weights"} <= whole.formulas.keys()
    assert whole.home("kv_cache").mode is not None and whole.home("usable") is rules
    assert "kv_cache" not in whole.reads_of(whole.formula("phase_bytes"))
    assert find(rules, "kv_cache").said == "formulas/serving/kv_cache.yaml"
    assert find(rules, "does_not_fit").said == "profiles/statuses/does_not_fit.yaml"
    named = find(rules, "statuses/serving/does_not_fit")
    assert named.said == "profiles/statuses/serving/does_not_fit.yaml"
    folders = [f for f in rule_folders(rules.roots) if f.endswith("/serving")]
    known = {said for f in folders for _, said, _ in files_of(rules.roots, f).values()}
    assert "profiles/engines/serving/hf-transformers.yaml" in known
    assert modes_of(rules.roots) == ("serving",)


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["show", "kv_cache"],
        ["show", "engines/serving/hf-transformers"],
        ["show", "mode"],
        ["prove", "--only", "kv_cache"],
        ["test", "--only", "kv_cache"],
        ["graph", "kv_cache"],
    ],
    ids=" ".join,
)
def test_workshop_commands(words: list[str]) -> None:
    status, out, _ = call("rules", *words)
    assert status == 0 and ("serving" in out or "kv_cache" in out)


def test_eject_and_diff_follow_the_folders(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    assert (
        call("rules", "eject", str(target), "serving_overhead", "engines/serving/hf-transformers")[
            0
        ]
        == 0
    )
    profile = target / "profiles/engines/serving/hf-transformers.yaml"
    assert (target / "formulas/serving/serving_overhead.yaml").is_file()
    profile.write_text(profile.read_text().replace("500 MiB, ", "600 MiB, "), encoding="utf-8")
    status, out, _ = call("rules", "diff", str(target), "--json")
    moved: dict[str, Any] = {c["id"]: c["moves"] for c in json.loads(out)["configurations"]}
    assert status == 0
    (total,) = [m for m in moved["serving"] if m["name"] == "serving_total"]
    assert total["difference"] == 100 << 20
    assert not moved["golden"]


def test_why_leads_to_the_command_of_the_mode() -> None:
    status, _, err = call("rules", "why", "kv_cache")
    assert status == 2 and "fitcheck infer MODEL --derive" in err
