"""`fitcheck compare`: each line is what an estimate on that card alone says."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from fitcheck.cli import start
from fitcheck.cli.errors import guarded
from fitcheck.engine.api import estimate, rules_for
from fitcheck.engine.cards import cards_of
from fitcheck.engine.checks import check_roots
from fitcheck.engine.loading import roots_of
from fitcheck.engine.template import MIB

LLAMA, QWEN = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-8B"
HINTS = Path(__file__).parents[1] / "formulas" / "hints.yaml"


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = guarded(lambda: start.run(words))
    return status, out.getvalue(), err.getvalue()


def compared(*words: str) -> tuple[int, list[dict[str, Any]]]:
    status, out, _ = run("compare", *words, "--json")
    return status, json.loads(out)["cards"]


def test_each_line_is_an_estimate_of_its_own() -> None:
    flags = {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True}
    names = ["4090", "t4", "a100-40", "h100", "mi300x", "gb300", "3060-8"]
    words = ["--qlora", "--lora-r", "64", "--batch-size", "4", "--flash-attn"]
    status, lines = compared(LLAMA, *names, *words)
    assert status == 0 and sorted(line["key"] for line in lines) == sorted(names)
    for line in lines:
        alone = estimate(LLAMA, gpu=line["key"], **flags)
        assert line["total_mib"] == round(alone["total"] / MIB, 2)
        assert line["total_high_mib"] == round(alone["total_high"] / MIB, 2)
        assert line["capacity_mib"] == round(alone["usable"] / MIB, 2)
        assert line["headroom_mib"] == round(alone["headroom"] / MIB, 2)
        assert line["max_batch_size"] == alone["max_batch_size"]
        assert (line["status"], line["safe_fits"]) == (alone.status, alone.safe)
        assert line["reasons"] == list(alone.reasons)
        assert line["unsettled"] == list(alone.unsettled)
        assert line["evidence"] == alone.grade("total").to_dict()
    assert [line["key"] for line in lines if line["unsettled"]] == ["gb300"]  # a draft


@pytest.mark.parametrize("engine", ["hf-transformers", "vllm", "sglang", "llama.cpp"])
def test_serving_is_compared_with_what_each_card_makes_of_the_engine(engine: str) -> None:
    names = ["4090", "h100", "3060-12", "b200"]
    words = ["--seq-len", "8192", "--concurrent", "2", "--engine", engine]
    _, lines = compared(QWEN, *names, "--infer", *words)
    for line in lines:
        alone = estimate(
            QWEN, gpu=line["key"], mode="serving", seq_len=8192, concurrent=2, engine=engine
        )
        assert line["total_mib"] == round(alone["serving_total"] / MIB, 2)
        assert line["capacity_mib"] == round(alone["serving_budget"] / MIB, 2)
        assert line["max_concurrent"] == alone["max_concurrent"]
        assert line["status"] == alone.status


def test_options_of_an_engine_work_here_too() -> None:
    first = compared(QWEN, "4090", "--infer", "--engine", "vllm", "--max-model-len", "4096")
    assert first == compared(QWEN, "4090", "--infer", "--engine", "vllm", "--seq-len", "4096")


def test_the_most_headroom_comes_first() -> None:
    _, lines = compared(LLAMA, "--all", "--qlora")
    rooms = [line["headroom_mib"] for line in lines]
    assert rooms == sorted(rooms, reverse=True)
    assert {line["key"] for line in lines} == {card.id for card in cards_of(rules_for())}


def test_only_cards_on_which_it_fits() -> None:
    _, every = compared(LLAMA, "--all", "--qlora", "--flash-attn")
    _, fitting = compared(LLAMA, "--all", "--fits", "--qlora", "--flash-attn")
    assert fitting == [line for line in every if line["fits"]]
    assert 0 < len(fitting) < len(every)


def test_a_card_is_compared_once_however_it_is_named() -> None:
    _, lines = compared(LLAMA, "4090", "rtx 4090", "--gpu", "NVIDIA GeForce RTX 4090", "--qlora")
    assert [line["key"] for line in lines] == ["4090"]


def test_a_card_by_its_memory_too() -> None:
    _, lines = compared(LLAMA, "4090", "--vram-mib", "50000", "--qlora")
    assert [line["key"] for line in lines] == ["custom", "4090"]
    assert lines[0]["capacity_mib"] == 47500


def test_the_footer_says_whether_the_peak_is_the_same() -> None:
    _, same, _ = run("compare", LLAMA, "4090", "h100", "--qlora")
    assert "The peak is identical on every card, only the ceiling moves." in same
    assert "upper end" not in same
    _, other, _ = run("compare", LLAMA, "4090", "t4", "--qlora")
    assert "identical" not in other and "The peak depends on the card: " in other
    assert "the verdict looks at its upper end" in other  # the overhead of a T4 has a band
    _, one, _ = run("compare", LLAMA, "4090", "--qlora")
    assert "peak is identical" not in one


def test_the_table_has_a_line_for_each_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("compare", LLAMA, "3060-8", "4090", "--batch-size", "4", "--qlora")
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert status == 1
    assert lines["4090"][-3:] == ["DOES", "NOT", "FIT"]
    assert list(lines).index("4090") < list(lines).index("3060-8")
    assert max(map(len, out.splitlines())) <= 80


def test_the_exit_code_says_whether_any_card_is_safe() -> None:
    assert run("compare", LLAMA, "4090", "--qlora", "--flash-attn")[0] == 0
    assert run("compare", LLAMA, "4090")[0] == 1
    assert run("compare", LLAMA, "3060-8", "4090", "--qlora", "--flash-attn")[0] == 0


def test_where_it_fits_nowhere() -> None:
    status, out, _ = run("compare", LLAMA, "3060-8", "4090", "--fits", "--no-lora")
    assert status == 1 and "It fits on none of the 2 cards." in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "MODEL is missing"),
        ((LLAMA,), "No GPU is named"),
        ((LLAMA, "409O"), "Did you mean 4090?"),
        ((LLAMA, "4090", "--concurrent", "3"), "No such option"),
        ((LLAMA, "4090", "--infer", "--lora-r", "3"), "No such option"),
        ((LLAMA, "4090", "--batch-size", "0"), "--batch-size 0 is out of range"),
        ((LLAMA, "4090", "--no-lora", "--quant", "nf4"), "not modelled"),
        (("no-such-model-anywhere", "4090", "--source", "catalogue"), "no-such-model-anywhere"),
    ],
)
def test_what_is_wrong_is_said(words: tuple[str, ...], told: str) -> None:
    status, out, err = run("compare", *words)
    assert (status, out) == (2, "") and told in err


def test_a_name_that_several_sizes_share_is_said() -> None:
    _, out, err = run("compare", LLAMA, "3060", "--qlora")
    assert "3060-8" in out and "'3060' comes in several sizes" in err


def test_help_shows_the_options_of_what_is_compared() -> None:
    status, training, _ = run("compare", "--help")
    assert status == 0 and "--lora-r" in training and "--infer" in training
    status, serving, _ = run("compare", "--infer", "--help")
    assert status == 0 and "--concurrent" in serving and "--lora-r" not in serving


def test_a_folder_without_rules_is_refused(tmp_path: Path) -> None:
    status, _, err = run("compare", LLAMA, "4090", "--rules", str(tmp_path))
    assert status == 2 and "no rule file in it" in err


def test_changed_rules_keep_every_card_from_being_safe(tmp_path: Path) -> None:
    (tmp_path / "hints.yaml").write_text(HINTS.read_text(encoding="utf-8"), encoding="utf-8")
    status, lines = compared(LLAMA, "h100", "4090", "--qlora", "--rules", str(tmp_path))
    assert status == 1 and {line["status"] for line in lines} == {"uncertain"}
    assert all(line["unsettled"] for line in lines)


def test_rules_that_do_not_say_what_to_show(tmp_path: Path) -> None:
    bare = HINTS.read_text(encoding="utf-8").split("# What a run that fits")[0]
    (tmp_path / "hints.yaml").write_text(bare, encoding="utf-8")
    status, _, err = run("compare", LLAMA, "4090", "--rules", str(tmp_path))
    assert status == 2 and "has no `compare:`" in err
    status, out, _ = run("optimize", LLAMA, "--gpu", "4090", "--rules", str(tmp_path), "--json")
    assert status == 1 and [p["goal"] for p in json.loads(out)["proposals"]] == ["fits"]


def test_what_a_comparison_shows_is_checked(tmp_path: Path) -> None:
    wrong = HINTS.read_text(encoding="utf-8").replace(
        "most: {quantity: max_batch_size", "most: {quantity: max_batch"
    )
    (tmp_path / "hints.yaml").write_text(wrong, encoding="utf-8")
    (found,) = [p for p in check_roots(roots_of([str(tmp_path)])) if p.code == "F201"]
    assert "`max_batch` is not known" in found.message
