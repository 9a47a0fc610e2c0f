"""One walk from flags to verdict, through at most eight modules of the engine.

Who wants to know where a number comes from reads these, in this order:

1. report.py      the question as a whole: evaluate, find limits, judge, list components
2. run.py         one evaluation: every quantity at most once, on demand
3. rules.py       which formula, with its expressions compiled
4. scope.py       what a name in a formula stands for in this run
5. algebra.py     the arithmetic; its operators are in arithmetic.py and selecting.py
6. profile.py     which overhead and reserve file matches best
7. template.py    numbers in sentences
8. grades.py      how well each number is supported

Reading the rule files happens before (loading.py and what it calls), and so does finding the card
and the model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fitcheck.engine
from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.report import Prepared, Report, build_report

ENGINE = Path(fitcheck.engine.__file__ or "").parent.resolve()
MOST = 8
# Plain values and their operators, without a decision in them: what is read in passing.
RECORDS = {
    "arithmetic.py",
    "selecting.py",
    "record.py",
    "formula.py",
    "flags.py",
    "cards.py",
    "units.py",
    "versions.py",
    "errors.py",
}

LLAMA: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4_096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
}
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("4090", {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True}),
    ("t4", {"quant": "nf4", "precision": "fp16", "grad_checkpoint": True, "seq_len": 1_024}),
    ("h100", {"lora": False, "optimizer": "adam8bit"}),
]


def ready(gpu: str, flags: Mapping[str, Any]) -> Prepared:
    """Everything read and compiled, nothing computed."""
    rules = rules_for()
    start = prepare(rules, LLAMA, gpu=gpu, vram_mib=None, source="auto", flags=flags)
    build_report(start)
    return start


def modules_called(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result, and the engine's modules in the order in which a function of each is called."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            file = Path(frame.f_code.co_filename)
            if ENGINE in file.parents or ENGINE in file.resolve().parents:
                seen.setdefault(file.resolve().relative_to(ENGINE).as_posix(), None)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(before)
    return result, list(seen)


def listed() -> list[str]:
    """The modules that the text above names, in its order."""
    return re.findall(r"^\d\. (\w+\.py)", __doc__ or "", re.MULTILINE)


@pytest.mark.parametrize(("gpu", "flags"), RUNS, ids=[gpu for gpu, _ in RUNS])
def test_at_most_eight_modules_from_flags_to_verdict(gpu: str, flags: dict[str, Any]) -> None:
    start = ready(gpu, flags)
    report, called = modules_called(lambda: build_report(start))
    assert isinstance(report, Report)
    walk = [name for name in called if name not in RECORDS]
    assert len(walk) <= MOST, f"{len(walk)} modules: {', '.join(walk)}"
    assert set(walk) <= set(listed()), f"not in the text above: {set(walk) - set(listed())}"


def test_the_text_lists_the_modules_of_a_walk() -> None:
    called: set[str] = set()
    for gpu, flags in RUNS:
        start = ready(gpu, flags)
        called |= set(modules_called(lambda start=start: build_report(start))[1])  # type: ignore[misc]
    assert set(listed()) == called - RECORDS
    assert len(listed()) <= MOST


def test_nothing_is_read_during_the_walk() -> None:
    start = ready(*RUNS[0])
    _, called = modules_called(lambda: build_report(start))
    reading = {"yaml_source.py", "loading.py", "architecture.py", "expression.py", "api.py"}
    assert not reading & set(called), reading & set(called)
