"""The advisor: the golden sweep, the contract, ties, refusals, both evaluators."""

from __future__ import annotations

import itertools
import json
import math
import shlex
import subprocess
import sys
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fitcheck
from fitcheck.cli.errors import guarded
from fitcheck.cli.start import run as start
from fitcheck.engine import advisor_grid, api
from fitcheck.engine.advice import Advice
from fitcheck.engine.advise_rules import plan_of
from fitcheck.engine.advisor_front import undominated
from fitcheck.engine.errors import FitcheckError, InputProblem, Refusal

MIB = 1 << 20
MODEL = "meta-llama/Llama-3.1-8B"
FIXED = {"qlora": True, "flash_attn": True}
SEQ_LENS = [512, 1024, 2048, 4096, 8192]


def run(words: list[str]) -> int:
    """The exit status of a command line, as the program ends with it."""
    return guarded(lambda: start(words))


def mib(value: int) -> float:
    return float(Fraction(value, MIB))


def whole_bytes(mib_as_published: str) -> int:
    """Bytes of a golden number, which was computed without rounding the components."""
    return round(Fraction(mib_as_published) * MIB)


def swept(model: Any = MODEL, **more: Any) -> Advice:
    return fitcheck.advise(model, **{"gpu": "4090", "source": "catalogue", **FIXED, **more})


@pytest.fixture(scope="module")
def golden() -> Advice:
    return swept(seq_lens=SEQ_LENS)


def test_the_golden_sweep(golden: Advice) -> None:
    assert (golden.grid_size, golden.fitting_count, golden.exit_code) == (150, 60, 0)
    (row,) = golden.frontier
    assert golden.recommended is row
    assert row.objectives == {"tokens_per_step": 4_096, "lora_rank": 256}
    assert row.total == whole_bytes("22535.86640625")
    assert row.splits == ((8, 512), (4, 1024), (2, 2048), (1, 4096))
    assert row.values == {"batch_size": 8, "seq_len": 512, "lora_r": 256}
    assert [(c.axis, c.value) for c in golden.ceilings] == [
        ("batch_size", 8),
        ("tokens_per_step", 4_096),
        ("lora_rank", 330),
    ]
    assert golden.ceilings[2].total == whole_bytes("23497.86640625")
    assert [(p.axis, p.before, p.after, round(mib(p.delta), 6)) for p in golden.prices] == [
        ("lora_rank", 256, 128, -1_664.0),
        ("lora_rank", 256, 512, 3_328.0),
        ("tokens_per_step", 4_096, 2_048, -5_283.6),
        ("tokens_per_step", 4_096, 8_192, 10_567.2),
    ]


@pytest.mark.parametrize(
    ("batch", "rank", "total", "tokens", "highest"),
    [(2, 64, "20039.86640625", 4_096, 330), (2, 8, None, 4_096, 330), (1, 64, None, None, 736)],
)
def test_other_anchors(
    batch: int, rank: int, total: str | None, tokens: int | None, highest: int
) -> None:
    advice = swept(seq_lens=[2048], batch_sizes=[batch], lora_ranks=[rank])
    assert advice.recommended is not None
    if total is not None:
        assert advice.recommended.total == whole_bytes(total)
        prices = [(p.after, mib(p.delta)) for p in advice.prices if p.axis == "lora_rank"]
        assert prices == [(32, -416.0), (128, 832.0)]
    found = {c.axis: c.value for c in advice.ceilings}
    assert found["lora_rank"] == highest
    assert tokens is None or found["tokens_per_step"] == tokens


def test_nothing_fits() -> None:
    advice = swept(gpu="t4", seq_lens=[8192], batch_sizes=[1], lora_ranks=[64])
    assert (advice.recommended, advice.safest, advice.exit_code) == (None, None, 1)
    assert [c.value for c in advice.ceilings] == [0, 0, 0]
    # the file of golden numbers has six decimals, and bytes are whole
    assert advice.ceilings[0].total == whole_bytes("32097.649025")
    assert advice.to_dict()["recommended"] is None
    more = swept(gpu="t4", seq_lens=[8192, 4096], batch_sizes=[4, 2], lora_ranks=[256, 64])
    values = more.anchor.prepared.settings.values
    assert [values[n] for n in ("batch_size", "seq_len", "lora_r")] == [2, 4096, 64]


CONTRACT = {  # key to (type, keys of what is inside), as published
    "fitcheck_version": str,
    "model": dict,
    "gpu": dict,
    "sweep": dict,
    "anchor": dict,
    "grid_size": int,
    "fitting_count": int,
    "frontier": list,
    "recommended": dict,
    "ceilings": list,
    "prices": list,
    "verdict": dict,
}
ROW = ("batch_size", "seq_len", "lora_rank", "tokens_per_step", "total_mib", "fits", "command")


def test_the_json_contract(golden: Advice, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", MODEL, "--qlora", "--flash-attn", "--gpu", "4090", "--json"]
    assert run([*words, "--seq-lens", ",".join(map(str, SEQ_LENS)), "--source", "catalogue"]) == 0
    data = json.loads(capsys.readouterr().out)
    for key, kind in CONTRACT.items():
        assert isinstance(data[key], kind), key
    estimate = api.estimate(MODEL, gpu="4090", source="catalogue").to_dict()
    assert data["model"] == estimate["model"]
    assert data["gpu"] == estimate["gpu"]
    assert data["verdict"] == {"fits": True, "gpu_capacity_mib": 23_500.0}
    assert data["sweep"]["batch_sizes"] == [1, 2, 4, 8, 16]
    assert data["sweep"]["lora_ranks"] == [8, 16, 32, 64, 128, 256]
    assert data["recommended"] == data["frontier"][0]
    row = data["recommended"]
    assert {*ROW, "equivalent_splits"} <= row.keys()
    assert row["fits"] is True
    assert row["equivalent_splits"] == [[8, 512], [4, 1024], [2, 2048], [1, 4096]]
    assert (row["total_mib"], row["status"], row["safe"]) == (22_535.87, "uncertain", False)
    assert data["recommended_safe"]["tokens_per_step"] == 2_048
    assert data["anchor"] == estimate["training"] | {
        "quantization": "nf4", "grad_checkpoint": True, "flash_attn": True,
        "batch_size": 8, "seq_len": 512, "lora_rank": 256,
    }  # fmt: skip
    assert [c["max_value"] for c in data["ceilings"]] == [8, 4_096, 330]
    assert not any("throughput" in key or "speed" in key for key in (*data, *row))
    del data["recommended"]["command"], data["frontier"][0]["command"]
    again = golden.to_dict()
    assert data["prices"] == again["prices"]


def test_the_sweep_is_sorted_and_has_each_value_once() -> None:
    advice = swept(seq_lens="2048, 512..1024:512,512", batch_sizes=[4, 1, 4], lora_ranks=8)
    assert advice.axes == {"batch_size": (1, 4), "seq_len": (512, 1024, 2048), "lora_r": (8,)}
    assert advice.grid_size == 6


def test_every_printed_command_gives_the_printed_total(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", MODEL, "--seq-lens", "512,1536", "--lora-ranks", "8,300", "--source"]
    words += ["catalogue", "--stack", "transformers=4.57.6", "--grad-checkpoint", "--json"]
    for sweep in ("quant=none,nf4", "flash-attn=on,off", "lora-targets=q,v/full", "gpu=t4,l4"):
        words += ["--sweep", sweep]
    assert run(words) == 0
    data = json.loads(capsys.readouterr().out)
    rows = [*data["frontier"], data["recommended_safe"]]
    assert len(rows) == 3
    for row in rows:
        program, *command = shlex.split(row["command"])
        assert program == "fitcheck"
        run([*command, "--json"])
        found = json.loads(capsys.readouterr().out)
        assert found["memory_mib"]["total"] == row["total_mib"]
        assert found["verdict"]["status"] == row["status"]
        assert found["gpu"]["key"] == row["gpu"]
        assert found["training"]["lora_rank"] == row["lora_rank"]


def brute_force(advice: Advice, kind: str = "fits") -> set[tuple[int, int]]:
    """The objectives of the frontier from one full estimate of every point."""
    points = set()
    for values in itertools.product(*advice.axes.values()):
        flags = dict(zip(advice.axes, values, strict=True))
        found = api.estimate(MODEL, gpu="4090", source="catalogue", **FIXED, **flags)
        if found["fits"] and (kind == "fits" or found.safe):
            points.add((flags["batch_size"] * flags["seq_len"], flags["lora_r"]))
    return {p for p in points if not any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in points)}


@settings(max_examples=8, deadline=None)
@given(
    st.sets(st.integers(1, 40), min_size=1, max_size=3),
    st.sets(st.integers(1, 5_000), min_size=1, max_size=3),
    st.sets(st.integers(1, 700), min_size=1, max_size=3),
)
def test_the_frontier_is_that_of_brute_force(
    batches: set[int], lengths: set[int], ranks: set[int]
) -> None:
    advice = swept(batch_sizes=batches, seq_lens=lengths, lora_ranks=ranks)
    pairs = [tuple(row.objectives.values()) for row in advice.frontier]
    assert set(pairs) == brute_force(advice)
    assert pairs == sorted(pairs, reverse=True)
    safe = brute_force(advice, "safe")
    found = advice.safest and tuple(advice.safest.objectives.values())
    assert found == max(safe, default=None)
    for row in advice.frontier:
        for split in row.splits:
            flags = {**row.values, "batch_size": split[0], "seq_len": split[1]}
            there = api.estimate(MODEL, gpu="4090", source="catalogue", **FIXED, **flags)
            assert abs(there["total"] - row.total) <= 1e-9 * row.total


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 30), min_size=1))
def test_undominated_pairs(best: dict[int, int]) -> None:
    assert dict(undominated(best)) == {
        a: b for a, b in best.items() if not any(c > a and d >= b for c, d in best.items())
    }


MIXED: list[dict[str, Any]] = [
    {"model": MODEL, "sweep": {"quant": ["none", "nf4", "int8"], "double_quant": [True, False]}},
    {"model": MODEL, "flash_attn": False, "gpu": "t4", "sweep": {"grad_checkpoint": [True, False]}},
    {"model": "Qwen/Qwen2.5-VL-7B-Instruct", "gpu": "h100", "images": 2},
    {"model": "Qwen/Qwen3-30B-A3B", "gpu": None, "sweep": {"gpu": ["h100", "h200"]}},
]


@pytest.mark.parametrize("asked", MIXED)
def test_arrays_and_single_estimates_agree(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numpy")
    asked = {"seq_lens": [256, 3000, 6000], "batch_sizes": [1, 3], "lora_ranks": [4, 64], **asked}
    exact = swept(**asked)
    monkeypatch.setattr(advisor_grid, "FEW", 0)
    monkeypatch.setattr(advisor_grid, "CHUNK", 5)
    arrays = swept(**asked)
    assert hasattr(arrays.blocks[0].total, "dtype")
    assert isinstance(exact.blocks[0].total, list)
    assert exact.to_dict() == arrays.to_dict()
    for one, other in zip(exact.blocks, arrays.blocks, strict=True):
        assert one.refused == other.refused
        assert one.fits == other.fits.tolist()
        assert one.safe == other.safe.tolist()
        for a, b in zip(one.total, other.total.tolist(), strict=True):
            assert (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12)


def test_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert swept(seq_lens="64..2048:64", lora_ranks="8..64:8").grid_size == 32 * 8 * 5
    with pytest.raises(FitcheckError, match="pip install numpy"):
        swept(seq_lens="16..4096:16", lora_ranks="8..64:8")


def test_points_that_are_refused_are_counted_and_told() -> None:
    advice = swept(
        seq_lens=[1024], sweep={"quant": "none,nf4,int8", "double_quant": "on,off"}, qlora=False
    )
    assert advice.grid_size == 6 * 30
    assert sum(advice.refusals.values()) == 2 * 30
    assert all("--double-quant" in says for says in advice.refusals)
    images = swept("Qwen/Qwen2.5-VL-7B-Instruct", gpu="h100", images=4, seq_lens=[512, 8192])
    assert list(images.refusals.values()) == [30]
    assert "5,476" in next(iter(images.refusals))
    assert all(row.values["seq_len"] == 8192 for row in images.frontier)


def test_what_is_refused_altogether_is_an_error() -> None:
    with pytest.raises(InputProblem, match="--double-quant"):
        swept(seq_lens=[1024], qlora=False, double_quant=True, sweep={"quant": ["none", "int8"]})
    with pytest.raises(Refusal):
        swept(seq_lens=[1024], lora_targets="no_such_module")
    with pytest.raises(Refusal, match="5,476"):
        swept("Qwen/Qwen2.5-VL-7B-Instruct", gpu="h100", images=4, seq_lens=[512])


def test_equal_rows_of_other_settings_come_cheapest_first() -> None:
    advice = swept(
        seq_lens=[1024], batch_sizes=[1], lora_ranks=[8], sweep={"optimizer": "adamw,sgd,adam8bit"}
    )
    assert [row.settings["optimizer"] for row in advice.frontier] == ["sgd", "adam8bit", "adamw"]
    cards = swept(
        seq_lens=[256], batch_sizes=[1], lora_ranks=[8], gpu=None, sweep={"gpu": "l4,4090"}
    )
    assert {row.gpu for row in cards.frontier} == {"l4", "4090"}
    again = swept(seq_lens=[256], gpu=None, sweep={"gpu": ["4090", "rtx4090", "t4"]})
    assert (again.others["gpu"], again.grid_size) == (("4090", "t4"), 60)


def test_a_warning_of_another_combination_is_told_with_its_options() -> None:
    asked: dict[str, Any] = {"seq_lens": [256], "batch_sizes": [1], "lora_ranks": [8]}
    advice = swept(**asked, sweep={"quant": ["nf4", "int8"]}, gpu="h100")
    assert [row.settings["quant"] for row in advice.frontier] == ["nf4", "int8"]
    alone = swept(**asked, quant="int8", gpu="h100").warnings
    assert alone and set(alone) - set(swept(**asked, gpu="h100").warnings)
    for text in set(alone) - set(swept(**asked, gpu="h100").warnings):
        assert f"--quant int8 --gpu h100: {text}" in advice.warnings


def test_ceilings_are_searched_for(golden: Advice) -> None:
    """Each ceiling fits and one more does not, whatever the grid holds."""
    values = {n: golden.anchor.prepared.settings.values[n] for n in golden.axes}
    for ceiling, flag in zip(golden.ceilings, ("batch_size", None, "lora_r"), strict=True):
        if flag is None:
            continue
        for more, fits in ((0, True), (1, False)):
            flags = {**values, flag: ceiling.value + more}
            there = api.estimate(MODEL, gpu="4090", source="catalogue", **FIXED, **flags)
            assert there["fits"] is fits
            assert more or there["total"] == ceiling.total


def test_a_step_out_of_range_has_no_price() -> None:
    advice = swept(seq_lens=[1], batch_sizes=[1], lora_ranks=[1])
    assert [(p.axis, p.after) for p in advice.prices] == [("lora_rank", 2), ("tokens_per_step", 2)]
    odd = swept(seq_lens=[1024], batch_sizes=[3], lora_ranks=[9])
    assert [(p.before, p.after) for p in odd.prices] == [
        (9, 4), (9, 18), (3_072, 1_024), (3_072, 6_144),
    ]  # fmt: skip


def test_longer_than_the_model_was_made_for_only_warns(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", MODEL, "--seq-lens", "1024,262144", "--qlora", "--source", "catalogue"]
    assert run(words) == 0
    told = capsys.readouterr()
    assert "made for 131072 positions" in " ".join(told.err.split())
    assert run([*words, "--max-seq-len", "131072"]) == 2
    told = capsys.readouterr()
    assert "--seq-lens 262144 is more than --max-seq-len 131072" in " ".join(told.err.split())
    assert not told.out
    assert not swept(seq_lens=[131_072]).warnings


BAD = {
    "--seq-lens 1k": "no whole number",
    "--seq-lens 0": "--seq-lens: 0 is out of range",
    "--seq-lens 8..4:1": "a range rises",
    "--seq-lens 1..9999999:1": "more than 100,000 values",
    "--seq-lens 1..99999:1 --batch-sizes 1..9999:1": "points, and 10,000,000 are possible",
    "": "--seq-lens 1024,2048,4096",
    "--seq-lens 64 --no-lora": "--no-lora has no place here",
    "--seq-lens 64 --grad-accum 4": "--grad-accum has no place here",
    "--seq-lens 64 --batch-size 4": "--batch-sizes",
    "--seq-lens 64 --sweep seq-len=1,2": "--seq-lens",
    "--seq-lens 64 --sweep no-lora=on": "--no-lora has no place here",
    "--seq-lens 64 --sweep qlora=on,off": "short for several flags",
    "--seq-lens 64 --sweep optimiser=sgd": "Did you mean `optimizer`?",
    "--seq-lens 64 --sweep optimizer=sdg": "--sweep optimizer: sdg is not modelled",
    "--seq-lens 64 --sweep optimizer": "write NAME=VALUES",
    "--seq-lens 64 --sweep optimizer=sgd,,adamw": "a value is empty",
    "--seq-lens 64 --sweep flash-attn=maybe": "neither on nor off",
    "--seq-lens 64 --sweep images=a": "no whole number",
    "--seq-lens 64 --sweep gpu=t4,none-such": "Unknown GPU 'none-such'",
    "--seq-lens 64 --sweep gpu=t4 --gpu 4090": "two things",
    "--seq-lens 64 --sweep quant=nf4 --quant nf4": "two things",
    "--seq-lens 64 --sweep quant=nf4 --sweep quant=none": "given twice",
}


@pytest.mark.parametrize("typed", BAD)
def test_what_cannot_be_run(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", MODEL, *typed.split(), "--source", "catalogue"]) == 2
    told = capsys.readouterr()
    assert BAD[typed] in " ".join(told.err.split())
    assert not told.out
    assert "Traceback" not in told.err


def test_the_model_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", "--seq-lens", "64"]) == 2
    assert "MODEL is missing" in capsys.readouterr().err
    assert run(["advise"]) == 2
    assert "Usage: fitcheck advise MODEL --seq-lens LIST" in capsys.readouterr().err


def test_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", MODEL, "--qlora", "--flash-attn", "--source", "catalogue", "--seq-lens"]
    assert run([*words, "512,1024,2048,4096,8192"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for text in (
        "60 of 150 fit",
        "4,096 256 22,536 uncertain 8×512, 4×1,024, 2×2,048, 1×4,096",
        "may still run out of memory",
        "safe tokens/step 2,048, rank 256, 17,252 MiB",
        "rank 330 23,498 MiB",
        "4,096 -> 8,192 +10,567.20 MiB",
        "work, not speed",
    ):
        assert text in shown
    assert run([*words, "8192", "--gpu", "t4"]) == 1
    assert "NOTHING FITS" in capsys.readouterr().out


def test_a_small_sweep_imports_no_numpy() -> None:
    code = (
        "import sys; from fitcheck.cli.start import run\n"
        f"run(['advise', {MODEL!r}, '--seq-lens', '1024', '--qlora', '--json'])\n"
        "assert 'numpy' not in sys.modules and 'rich' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_overlays_are_swept_and_never_called_safe(tmp_path: Any) -> None:
    text = (api.bundled_root() + "/formulas/advise.yaml",)
    with open(text[0], encoding="utf-8") as handle:
        plan = handle.read()
    folder = tmp_path / "formulas"
    folder.mkdir()
    (folder / "advise.yaml").write_text(plan.replace("[1, 2, 4, 8, 16]", "[3]"), encoding="utf-8")
    advice = swept(seq_lens=[64], rules=str(tmp_path))
    assert advice.axes["batch_size"] == (3,)
    assert advice.recommended is not None and not advice.recommended.status.safe
    assert advice.safest is None
    assert f"--rules {shlex.quote(str(tmp_path))}" in str(advice.command(advice.recommended))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("fits: fits", "fits: fitz", "F201"),
        ("flag: lora_r\n", "flag: lora_q\n", "F201"),
        ("flag: lora_r\n", "flag: quant\n", "F106"),
        ("option: --lora-ranks", "option: --lora-r", "F106"),
        ("search: max_lora_r", "search: total", "F216"),
        ("value: lora_r, title: rank}\n", "value: total, title: rank}\n", "F201"),
        ("change: {lora_r: lora_r * 2}", "change: {lora_q: lora_r * 2}", "F201"),
        ("{model} was made", "{modell} was made", "F211"),
        ("fact: max_positions", "fact: positions", "F201"),
        ("axes:  ", "axis:  ", "F101"),
    ],
)
def test_a_wrong_advise_file_is_found(tmp_path: Any, old: str, new: str, code: str) -> None:
    from fitcheck.engine.checks import check_roots
    from fitcheck.engine.loading import roots_of

    with open(api.bundled_root() + "/formulas/advise.yaml", encoding="utf-8") as handle:
        plan = handle.read()
    assert old in plan
    (tmp_path / "advise.yaml").write_text(plan.replace(old, new, 1), encoding="utf-8")
    assert code in {p.code for p in check_roots(roots_of([str(tmp_path)]))}


def test_the_plan_names_what_the_specification_does() -> None:
    plan = plan_of(api.rules_for())
    assert [axis.option for axis in plan.axes] == ["--batch-sizes", "--seq-lens", "--lora-ranks"]
    assert set(plan.held) == {"lora", "grad_accum"}


def test_the_table_of_the_guide(golden: Advice) -> None:
    text = (Path(__file__).parents[1] / "docs/ADVISOR.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    stated = [tuple(cell.strip().replace(",", "") for cell in row) for row in rows[1:]]
    best, safe = golden.recommended, golden.safest
    assert best is not None and safe is not None
    found: list[tuple[str, int, int | None]] = [
        ("points", golden.grid_size, None),
        ("points that fit", golden.fitting_count, None),
        ("frontier: tokens per step at rank 256", best.objectives["tokens_per_step"], best.total),
        ("safe: tokens per step at rank 256", safe.objectives["tokens_per_step"], safe.total),
    ]
    assert best.values["lora_r"] == safe.values["lora_r"] == 256
    names = {"batch_size": "batch size", "tokens_per_step": "tokens per step", "lora_rank": "rank"}
    found += [(f"ceiling: {names[c.axis]}", c.value, c.total) for c in golden.ceilings]
    assert [row[:2] for row in stated[: len(found)]] == [(n, str(v)) for n, v, _ in found]
    assert [row[2] for row in stated[: len(found)]] == [
        "" if total is None else f"{mib(total):.2f}" for *_, total in found
    ]
    prices = [(str(p.after), f"{mib(p.delta):+.2f}") for p in golden.prices]
    assert [row[1:] for row in stated[len(found) :]] == prices


class Terminal(StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_of_a_long_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    import fitcheck.cli.advise as command

    for patience, shown in ((0.0, True), (3600.0, False)):
        stream = Terminal()
        monkeypatch.setattr(command, "PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", stream)
        progress = command.Progress()
        progress.tell(1_000, 4_000)
        progress.end()
        assert ("1,000 of 4,000 points (25 %)" in stream.getvalue()) is shown
        assert stream.getvalue().endswith("\r\x1b[K") is shown
    monkeypatch.setattr(command, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", StringIO())
    progress = command.Progress()
    progress.tell(1, 2)
    progress.end()
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
