"""Names of cards as people and nvidia-smi write them: found, noted, or refused with the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from fitcheck.engine.api import rules_for
from fitcheck.engine.cards import Card, all_cards, find_card, with_memory
from fitcheck.engine.checks import check_roots
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.loading import roots_of

GPUS = Path(__file__).parents[1] / "gpus"


def card(name: str, *folders: str) -> Card:
    rules = rules_for(folders)
    return find_card(name, rules.folders("gpus"), rules.units)


def refusal(name: str) -> str:
    with pytest.raises(InputProblem) as caught:
        card(name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "taken", "others"),
    [
        ("3060", "3060-8", "3060-12"),
        ("NVIDIA GeForce RTX 3060", "3060-8", "3060-12"),
        ("GeForce RTX 4060 Ti", "4060ti-8", "4060ti-16"),
        ("RTX-3080", "3080-10", "3080-12"),
        ("rtx 3080 laptop", "3080-laptop-8", "3080-laptop-16"),
        ("v100", "v100-16", "v100-32"),
        ("Tesla V100-PCIE", "v100-16", "v100-32"),
        ("A100", "a100-40", "a100-80"),
        ("GH200", "gh200-96", "gh200-144"),
        ("RTX PRO 5000", "rtx-pro-5000-48", "rtx-pro-5000-72"),
    ],
)
def test_of_several_sizes_the_smallest_is_taken_and_said(
    name: str, taken: str, others: str
) -> None:
    found = card(name)
    assert found.id == taken
    assert found.note == (
        f"'{name}' comes in several sizes; the smallest in the database was taken: {found.title} "
        f"(--gpu {taken}); for another write {others}"
    )


def test_a_size_that_is_not_in_the_database_is_thought_of_too() -> None:
    found = card("p100")  # there is one with 12 GB
    assert found.id == "p100-16" and found.note.endswith("NVIDIA Tesla P100 16 GB (--gpu p100-16)")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("4090", "4090"),
        ("4090 24GB", "4090"),
        ("4090 24 GiB", "4090"),
        ("3070 8gb", "3070"),
        ("RTX 3060 12GB", "3060-12"),
        ("rtx 3060 12", "3060-12"),
        ("NVIDIA GeForce RTX 3060 (12 GB)", "3060-12"),
        ("a100 40gb pcie", "a100-40"),
        ("A100-SXM4 80G", "a100-80"),
        ("NVIDIA A100 80GB PCIe", "a100-80"),
        ("Tesla V100-SXM2 32GB", "v100-32"),
        ("rtx 3050 laptop 6 gb", "3050-laptop-6"),
        ("NVIDIA GeForce RTX 3050 Laptop GPU", "3050-laptop-4"),  # what nvidia-smi prints for it
        ("NVIDIA RTX A2000", "a2000-6"),
        ("NVIDIA RTX PRO 5000 Blackwell", "rtx-pro-5000-48"),
        ("a16 16gb", "a16"),
        ("a16 64 GB", "a16"),
        ("h100 80gb pcie", "h100"),
    ],
)
def test_names_that_leave_no_choice(name: str, meant: str) -> None:
    found = card(name)
    assert (found.id, found.note) == (meant, "")


def test_every_card_is_found_by_its_title() -> None:
    rules = rules_for()
    for one in all_cards(rules.folders("gpus"), rules.units):
        found = card(one.title)
        assert (found.id, found.note) == (one.id, "")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("4091", "4090"),
        ("3061", "3060-12, 3060-8"),
        ("h1000", "h100"),
        ("b100", "b200, b300"),
        ("geforce 4090", "4090"),
        ("4090 48gb", "4090"),
        ("a100 96gb", "a100-40, a100-80"),
        ("3060ti 12gb", "3060ti"),
        ("rtx 6000", "quadro-rtx6000, rtx6000-ada"),
        ("gtx 1080", "gtx1080ti"),
    ],
)
def test_suggestions_are_of_cards_that_may_have_been_meant(name: str, near: str) -> None:
    text = refusal(name)
    assert text.startswith(f"Unknown GPU '{name}'. Did you mean ")
    found = text.partition("Did you mean ")[2].partition("? ")[0]
    assert sorted(found.split(", ")) == near.split(", ")


@pytest.mark.parametrize("name", ["banana", "rtx", "x", "rx 7900 xtx", "m4 max", "gb"])
def test_where_nothing_is_near_nothing_is_suggested(name: str) -> None:
    assert refusal(name) == (
        f"Unknown GPU '{name}'. --list-gpus prints every name; --vram-mib N takes any other card."
    )


def test_another_memory_leaves_nothing_to_note() -> None:
    assert with_memory(card("3060"), 12_000).note == ""


def overlay(folder: Path, old: str, new: str, name: str = "3070") -> str:
    text = (GPUS / f"{name}.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "gpus").mkdir(exist_ok=True)
    (folder / f"gpus/{name}.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(folder)


def test_a_rule_folder_can_add_a_size(tmp_path: Path) -> None:
    folder = overlay(tmp_path, "aliases:", "family: [rtx 3060]\naliases:")
    assert card("rtx 3060", folder).note.endswith("for another write 3070 or 3060-12")


@pytest.mark.parametrize("line", ["aliases: [rtx 3060]", "aliases: [nothing]\nfamily: [rtx 4090]"])
def test_a_name_leads_to_one_card_or_is_shared_by_all(tmp_path: Path, line: str) -> None:
    start = (GPUS / "3070.yaml").read_text(encoding="utf-8")
    aliases = next(one for one in start.splitlines() if one.startswith("aliases:"))
    folder = overlay(tmp_path, aliases, line)
    problems = check_roots(roots_of([folder]))
    assert {p.code for p in problems} == {"F706"}
    assert "to `family` there too" in problems[0].message


def test_all_cards_pass_their_checks() -> None:
    assert not [p for p in check_roots() if p.mark.path.startswith("gpus/")]
