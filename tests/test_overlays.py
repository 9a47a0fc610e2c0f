"""Changed rules: folders whose files replace the bundled ones by id, or join them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fitcheck import Report, estimate
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem, RuleFileError
from fitcheck.engine.loading import bundled_root

BUNDLED = Path(bundled_root())
MIB = 1 << 20

CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1_000,
}

EXTRA = """\
id: scratch
title: Scratch space
status: stable
unit: byte
order: 55
live: [forward]
json: {memory_mib.scratch: MiB, memory_bytes.scratch: byte}
counts: A flat amount in the forward pass.
constants:
  flat: {value: 100 MiB, unit: byte, meaning: scratch space, evidence: [made-up]}
cases:
  - {id: flat, expr: flat, says: always the same, evidence: [made-up]}
claims: {nonnegative: true}
evidence:
  made-up: {kind: assumption, where: a test, says: a round figure}
examples:
  - {name: any run, given: {}, expect: 104_857_600}
"""

CARD = """\
id: shelf
title: A card from a shelf
status: stable
vendor: nvidia
class: workstation
architecture: ada
aliases: [the old one]
memory:
  total: {value: 2_000 MiB, evidence: [label]}
  usable: {value: 1_900 MiB, evidence: [label]}
evidence:
  label: {kind: assumption, where: the box, says: as printed}
"""

RESERVE = """\
id: shelf
title: A card from a shelf, any run
status: stable
matches: {card: shelf}
values:
  basis: validated_reserve
  amount: {value: 50 MiB, evidence: [made-up]}
evidence:
  made-up: {kind: assumption, where: a test, says: a round figure}
"""


def bundled(name: str) -> str:
    return (BUNDLED / name).read_text(encoding="utf-8")


def changed(name: str, *edits: tuple[str, str]) -> str:
    """A bundled file with some of its text exchanged."""
    text = bundled(name)
    for old, new in edits:
        assert old in text, f"{name} no longer holds {old!r}"
        text = text.replace(old, new)
    return text


def overlay(folder: Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return str(folder)


def run(*folders: str, gpu: str = "4090", **flags: Any) -> Report:
    return estimate(CONFIG, gpu=gpu, rules=folders, **flags)


WIDER = changed("formulas/gradients.yaml", ("value: 4,", "value: 8,"))


def wider() -> str:
    """gradients.yaml with eight bytes an adapter parameter, and examples that agree."""
    old, new = "compute_bytes: 2}, expect: 218_103_808", "compute_bytes: 2}, expect: 436_207_616"
    assert old in WIDER
    return WIDER.replace(old, new)


# --- a changed file -------------------------------------------------------------------------------


def test_a_changed_file_changes_the_answer(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"gradients.yaml": wider()})
    before, after = run(), run(folder)
    assert after["gradients"] == 2 * before["gradients"] > 0
    assert after["total"] == before["total"] + before["gradients"]
    assert {c.id: c.bytes for c in after.components if c.id != "gradients"} == {
        c.id: c.bytes for c in before.components if c.id != "gradients"
    }


def test_the_answer_names_the_folders(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"gradients.yaml": wider()})
    after = run(folder)
    assert after.overlays == (folder,)
    assert after.to_dict()["overlays"] == [folder]
    assert run().overlays == ()
    assert run().to_dict()["overlays"] == []


def test_changed_rules_never_make_a_run_safe(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"gradients.yaml": wider()})
    before, after = run(), run(folder)
    assert (before.status, before.safe, before.exit_code) == ("safe", True, 0)
    assert (after.status, after.safe, after.exit_code) == ("uncertain", False, 1)
    assert any(folder in reason for reason in after.unsettled)
    assert not after.to_dict()["verdict"]["safe_fits"]
    assert any("changed rule" in reason for reason in after.reasons)


def test_changed_rules_can_say_that_it_does_not_fit(tmp_path: Path) -> None:
    text = EXTRA.replace("100 MiB", "30_000 MiB").replace("104_857_600", "31_457_280_000")
    after = run(overlay(tmp_path, {"scratch.yaml": text}))
    assert (after.status, after.exit_code) == ("does_not_fit", 1)


def test_the_bundled_rules_are_not_touched(tmp_path: Path) -> None:
    before = run()["total"]
    run(overlay(tmp_path, {"gradients.yaml": wider()}))
    assert run()["total"] == before
    assert run().status == "safe"


# --- an added component ---------------------------------------------------------------------------


def test_an_added_component_is_in_total_table_and_json(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"scratch.yaml": EXTRA})
    before, after = run(batch_size=64), run(folder, batch_size=64)
    assert after["scratch"] == 100 * MIB
    assert after.phases["forward"] == before.phases["forward"] + 100 * MIB
    assert after.phases["backward"] == before.phases["backward"]
    assert after["total"] == max(after.phases.values())
    ids = [c.id for c in after.components]
    assert ids.index("activations") < ids.index("scratch") < ids.index("overhead")
    data = after.to_dict()
    assert data["memory_mib"]["scratch"] == 100
    assert data["memory_bytes"]["scratch"] == 100 * MIB
    assert data["evidence"]["scratch"]["grade"] == "assumed"
    assert after.grade("total").grade == "assumed"
    assert "scratch" in after.derive("scratch")
    json.dumps(data)


def test_an_added_component_raises_the_total_where_it_lives_at_the_peak(tmp_path: Path) -> None:
    always = overlay(tmp_path, {"scratch.yaml": EXTRA.replace("live: [forward]", "live: [always]")})
    assert run(always)["total"] == run()["total"] + 100 * MIB


def test_an_added_component_lowers_the_largest_batch(tmp_path: Path) -> None:
    text = EXTRA.replace("live: [forward]", "live: [always]").replace("100 MiB", "10_000 MiB")
    text = text.replace("104_857_600", "10_485_760_000")
    after = run(overlay(tmp_path, {"scratch.yaml": text}))
    assert 0 < after["max_batch_size"] < run()["max_batch_size"]


# --- folders --------------------------------------------------------------------------------------


def test_a_flat_folder_and_a_mirrored_one_are_the_same(tmp_path: Path) -> None:
    flat = overlay(tmp_path / "flat", {"gradients.yaml": wider(), "scratch.yaml": EXTRA})
    mirrored = overlay(
        tmp_path / "mirrored",
        {"formulas/gradients.yaml": wider(), "formulas/scratch.yaml": EXTRA},
    )
    first, second = run(flat), run(mirrored)
    assert {n: first[n] for n in first} == {n: second[n] for n in second}


def test_a_later_overlay_wins_by_file(tmp_path: Path) -> None:
    one = overlay(tmp_path / "one", {"scratch.yaml": EXTRA, "gradients.yaml": wider()})
    two = overlay(
        tmp_path / "two",
        {"scratch.yaml": EXTRA.replace("100 MiB", "200 MiB").replace("104_857_600", "209_715_200")},
    )
    gradients = run()["gradients"]
    for folders, scratch in (((one, two), 200), ((two, one), 100)):
        after = run(*folders)
        assert after["scratch"] == scratch * MIB
        assert after["gradients"] == 2 * gradients
        assert after.overlays == folders
        assert all(any(f in reason for reason in after.unsettled) for f in folders)


def test_one_folder_may_be_given_as_text(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"scratch.yaml": EXTRA})
    assert estimate(CONFIG, gpu="4090", rules=folder)["scratch"] == 100 * MIB


def test_other_files_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    folder = overlay(
        tmp_path,
        {
            "scratch.yaml": EXTRA,
            "README.md": "# notes",
            "data.json": "{",
            "old.yaml~": "x: [",
            "sub/x.yaml": "x: [",
        },
    )
    assert run(folder)["scratch"] == 100 * MIB


def test_a_missing_folder() -> None:
    with pytest.raises(InputProblem, match=r"^--rules no/such: .*no such folder") as caught:
        run("no/such")
    assert caught.value.flag == "rules"


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    overlay(tmp_path, {"scratch.yaml": EXTRA})
    with pytest.raises(InputProblem, match=r"scratch\.yaml: .*folder"):
        run(str(tmp_path / "scratch.yaml"))


@pytest.mark.parametrize("files", [{}, {"notes.txt": "x"}, {"formulas/notes.txt": "x"}])
def test_a_folder_without_rules(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(InputProblem, match="no rule file in it"):
        run(overlay(tmp_path, files))


# --- broken overlays ------------------------------------------------------------------------------


def test_all_problems_of_a_broken_overlay_are_listed(tmp_path: Path) -> None:
    folder = overlay(
        tmp_path,
        {
            "scratch.yaml": EXTRA.replace("expr: flat,", "expr: flat + nothing,"),
            "more.yaml": EXTRA.replace("id: scratch", "id: more").replace("100 MiB", "100 MB"),
            "gpus/shelf.yaml": CARD.replace("1_900", "2_900"),
            "profiles/reserve/shelf.yaml": RESERVE.replace("card: shelf", "crad: shelf"),
            "half.yaml": "id: half\ntitle: [",
        },
    )
    with pytest.raises(RuleFileError) as caught:
        run(folder)
    found = {(Path(p.mark.path).name, p.code) for p in caught.value.problems}
    assert found >= {
        ("scratch.yaml", "F201"),
        ("more.yaml", "F703"),
        ("shelf.yaml", "F705"),
        ("shelf.yaml", "F307"),
        ("half.yaml", "F100"),
    }
    for problem in caught.value.problems:
        assert problem.mark.path.startswith(folder)
        assert problem.render() in str(caught.value)


def test_a_problem_of_two_files_together(tmp_path: Path) -> None:
    """Each is fine by itself; only beside the bundled overhead.yaml is the key taken."""
    text = EXTRA.replace("memory_mib.scratch", "memory_mib.overhead")
    with pytest.raises(RuleFileError) as caught:
        run(overlay(tmp_path, {"scratch.yaml": text}))
    (problem,) = caught.value.problems
    assert problem.code == "F215"
    assert "formulas/" in problem.message


def test_a_change_that_breaks_another_file(tmp_path: Path) -> None:
    """Removing a value that a bundled file reads is reported where it is read."""
    text = bundled("profiles/overhead/default.yaml").replace("form: share", "form: humps")
    with pytest.raises(RuleFileError) as caught:
        run(overlay(tmp_path, {"profiles/overhead/default.yaml": text}))
    assert {p.code for p in caught.value.problems} == {"F308"}


# --- cards, profiles, flags -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shelf", "Shelf", "the old one", "THE-OLD-ONE"])
def test_an_added_card(tmp_path: Path, name: str) -> None:
    after = run(overlay(tmp_path, {"gpus/shelf.yaml": CARD}), gpu=name)
    assert after.prepared.card.id == "shelf"
    assert after["usable"] == 1_900 * MIB
    assert after.to_dict()["gpu"]["name"] == "A card from a shelf"


def test_a_changed_card(tmp_path: Path) -> None:
    text = bundled("gpus/4090.yaml").replace("value: 23500 MiB", "value: 23000 MiB")
    folder = overlay(tmp_path, {"gpus/4090.yaml": text})
    assert run(folder)["usable"] == 23_000 * MIB
    assert run()["usable"] == 23_500 * MIB


def test_an_added_reserve(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"gpus/shelf.yaml": CARD, "profiles/reserve/shelf.yaml": RESERVE})
    after = run(folder, gpu="shelf")
    assert after["safe_total"] == after["total"] + 50 * MIB
    assert after["recommendation_basis"] == "validated_reserve"
    assert run(folder)["recommendation_basis"] == "point_estimate_margin"


def test_an_added_optimizer(tmp_path: Path) -> None:
    """A value in flags.yaml and a cell in optimizer.yaml; no Python."""
    flags = changed(
        "formulas/flags.yaml",
        (
            "      sgd: no state\n",
            "      sgd: no state\n      lion: one momentum buffer in 16 bits\n",
        ),
    )
    optimizer = changed(
        "formulas/optimizer.yaml",
        ("      sgd: {any: 0}\n", "      sgd: {any: 0}\n      lion: {any: 2}\n"),
    )
    folder = overlay(tmp_path, {"flags.yaml": flags, "optimizer.yaml": optimizer})
    after = run(folder, optimizer="lion")
    assert after["optimizer"] == 2 * after["trainable_parameters"]
    assert run(folder, optimizer="adamw")["optimizer"] == run()["optimizer"]
    with pytest.raises(InputProblem, match="lion is not modelled"):
        run(optimizer="lion")


def test_an_added_optimizer_without_a_cell_is_refused(tmp_path: Path) -> None:
    flags = changed(
        "formulas/flags.yaml",
        ("      sgd: no state\n", "      sgd: no state\n      lion: one buffer\n"),
    )
    with pytest.raises(RuleFileError) as caught:
        run(overlay(tmp_path, {"flags.yaml": flags}))
    (problem,) = caught.value.problems
    assert (problem.code, problem.mark.path) == ("F304", "formulas/optimizer.yaml")
    assert "optimizer=lion" in problem.message


def test_an_added_model_type(tmp_path: Path) -> None:
    text = changed(
        "profiles/architectures/llama.yaml",
        ("extends: decoder\n", "extends: decoder\nverified: [cria]\n"),
    )
    config = {**CONFIG, "model_type": "cria"}
    before = estimate(config, gpu="4090")
    assert any("model_type cria was never checked" in w for w in before.warnings)
    folder = overlay(tmp_path, {"profiles/architectures/llama.yaml": text})
    after = estimate(config, gpu="4090", rules=folder)
    assert not any("never checked" in w for w in after.warnings)
    assert after["total"] == before["total"]


def test_a_copy_of_every_file_changes_nothing_but_the_verdict(tmp_path: Path) -> None:
    for name in ("formulas", "profiles"):
        shutil.copytree(BUNDLED / name, tmp_path / name)
    before, after = run(), run(str(tmp_path))
    assert {n: after[n] for n in after} == {n: before[n] for n in before}
    assert (before.status, after.status) == ("safe", "uncertain")


def test_a_draft_caps_the_verdict(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"scratch.yaml": EXTRA.replace("status: stable", "status: draft")})
    after = run(folder)
    assert after.status == "uncertain"
    assert any("scratch.yaml is a draft" in reason for reason in after.unsettled)


def test_rules_with_overlays_are_read_anew(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {"scratch.yaml": EXTRA})
    assert run(folder)["scratch"] == 100 * MIB
    overlay(
        tmp_path,
        {"scratch.yaml": EXTRA.replace("100 MiB", "1 MiB").replace("104_857_600", "1_048_576")},
    )
    assert run(folder)["scratch"] == MIB
    assert "scratch" not in rules_for().formulas


# --- folders from strangers -----------------------------------------------------------------------


TRIPS = {  # most were tracebacks, found by a fuzzer or beside its finds
    "evidence of a limit": ("scratch.yaml", EXTRA + "limits: [{note: a, evidence: [{a: 1}]}]\n"),
    "evidence of a case": ("scratch.yaml", EXTRA.replace("[made-up]}\nclaims", "[[a]]}\nclaims")),
    "a card without evidence": ("gpus/shelf.yaml", CARD.split("evidence:\n")[0]),
    "memory without evidence": ("gpus/shelf.yaml", CARD.replace(", evidence: [label]", "")),
    "an architecture of text": (
        "profiles/architectures/odd.yaml",
        "id: odd\nmatches: {}\nlayer_groups: [a]\n",
    ),
    "no fields": (
        "profiles/architectures/odd.yaml",
        "id: odd\nmatches: {}\nlayer_groups: [{count: 1}]\n",
    ),
    "lists of text": ("formulas/lists.yaml", "lists: 5\n"),
    "a list without count": ("formulas/lists.yaml", "lists: {a: 5}\n"),
    "an id that is a list": ("scratch.yaml", EXTRA.replace("id: scratch", "id: [a]")),
    "hints of text": ("formulas/hints.yaml", "hints: [a, 1]\n"),
    "flags of text": ("formulas/flags.yaml", "flags: {a: 1}\ngroups: a\n"),
}


@pytest.mark.parametrize(("name", "text"), TRIPS.values(), ids=TRIPS)
def test_a_wrong_shape_is_a_message(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(RuleFileError):
        run(overlay(tmp_path, {name: text}))


def test_thousands_of_files_get_one_message_at_once(tmp_path: Path) -> None:
    folder = overlay(tmp_path, {f"x{i}.yaml": EXTRA for i in range(3_000)})
    began = time.process_time()
    with pytest.raises(RuleFileError, match="F105 too-many") as caught:
        run(folder)
    assert time.process_time() - began < 1
    assert len(caught.value.problems) == 1


def test_many_wrong_keys_are_told_once_each_and_not_all(tmp_path: Path) -> None:
    text = EXTRA + "".join(f"key{i}: 1\n" for i in range(600))
    with pytest.raises(RuleFileError) as caught:
        run(overlay(tmp_path, {"scratch.yaml": text}))
    assert len(caught.value.problems) <= 50


def test_a_long_word_is_cut_in_the_message(tmp_path: Path) -> None:
    text = EXTRA.replace("status: stable", "status: " + "ab c" * 20_000)
    with pytest.raises(RuleFileError) as caught:
        run(overlay(tmp_path, {"scratch.yaml": text}))
    assert len(str(caught.value)) < 5_000


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("stem", [b"\xff", b"a\x1b[31m", b"a\nb", b"a b", "\u202eb".encode()])
def test_a_strange_file_name_is_shown_harmlessly(stem: bytes, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(stem + b".yaml")).write_text(EXTRA, encoding="utf-8")
    with pytest.raises(RuleFileError) as caught:
        run(str(tmp_path))
    text = str(caught.value).encode().decode()  # no half of a character is left
    assert all(c.isprintable() or c == "\n" for c in text)


def test_two_files_of_one_id_in_one_folder(tmp_path: Path) -> None:
    text = Path(bundled_root(), "formulas", "gradients.yaml").read_text(encoding="utf-8")
    folder = tmp_path / "twice" / "formulas"
    folder.mkdir(parents=True)
    (folder / "gradients.yaml").write_text(text, encoding="utf-8")
    (folder / "gradients.yml").write_text(text, encoding="utf-8")
    with pytest.raises(RuleFileError, match="has the id `gradients` too"):
        estimate("meta-llama/Llama-3.1-8B", rules=str(tmp_path / "twice"))


def test_a_file_that_nothing_reads_is_told_with_the_answer(tmp_path: Path) -> None:
    text = Path(bundled_root(), "formulas", "gradients.yaml").read_text(encoding="utf-8")
    for place in ("formulas/gradients.yaml", "formula/gradients.yaml", "formulas/other.YAML"):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    told = estimate("meta-llama/Llama-3.1-8B", rules=str(tmp_path)).warnings
    assert sum("is not read" in text for text in told) == 2
