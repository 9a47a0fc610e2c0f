"""The search over arrays: exact on anything that rises, and few tries where it is straight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.run import Run
from fitcheck.engine.vector_search import largest
from fitcheck.engine.vectorized import VectorRun, evaluate

TOP = 1 << 20


def searched(fixed: Any, each: Any, square: Any, guided: bool) -> tuple[Any, int]:
    """The largest n with fixed + each n + square n^2 <= 1, and how often it was tried."""
    tries = 0

    def tried(n: Any) -> tuple[Any, Any]:
        nonlocal tries
        tries += 1
        margin = 1 - (fixed + each * n + square * n * n)
        return margin >= 0, margin if guided else np.full(n.shape, np.nan)

    with np.errstate(all="ignore"):
        return largest(fixed.shape, TOP, tried), tries


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1, 1.5), st.floats(0, 2), st.floats(0, 1e-3)), min_size=1, max_size=8
    ),
    st.booleans(),
)
def test_it_holds_at_the_answer_and_not_above(
    rows: list[tuple[float, float, float]], guided: bool
) -> None:
    fixed, each, square = np.array(rows).T
    found, _ = searched(fixed, each, square, guided)

    def holds(n: Any) -> Any:
        return 1 - (fixed + each * n + square * n * n) >= 0

    assert np.all((found == 0) | holds(found))
    assert np.all((found == TOP) | ~holds(found + 1))
    assert np.all((found >= 0) & (found <= TOP) & (found == np.floor(found)))


def test_a_straight_line_takes_few_tries() -> None:
    random = np.random.default_rng(0)
    fixed, each = random.uniform(-1, 0.5, 1000), random.uniform(1e-5, 0.3, 1000)
    guided, tries = searched(fixed, each, np.zeros(1000), True)
    blind, more = searched(fixed, each, np.zeros(1000), False)
    assert (guided == blind).all()
    assert tries <= 6 < more


@pytest.mark.parametrize("name", ["max_batch_size", "max_seq_len", "max_lora_r"])
def test_every_ceiling_over_a_grid_is_that_of_the_exact_search(name: str) -> None:
    rules, random, points = rules_for(), np.random.default_rng(3), 60
    prepared = prepare(
        rules, "meta-llama/Llama-3.1-8B", gpu="4090", vram_mib=None, source="catalogue", flags={}
    )
    arrays = {
        "batch_size": random.integers(1, 5, points),
        "seq_len": random.integers(64, 2048, points),
        "lora_r": random.integers(1, 129, points),
        "quant": np.array(["none", "int8", "nf4"])[random.integers(0, 3, points)],
        "flash_attn": random.integers(0, 2, points) == 1,
        "grad_checkpoint": random.integers(0, 2, points) == 1,
    }
    found = evaluate(rules, prepared, arrays, name)
    run = VectorRun.over(rules, prepared, arrays)
    exact = [run.configuration(i).value(name) for i in range(points)]
    assert found.tolist() == exact
    assert len(set(exact)) > 5
    assert isinstance(run.configuration(0), Run)
