"""Pictures of training and of sweeps: exact points, sums, walls, and what is drawn of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from fitcheck.cli.plot_edge_file import draw as draw_edge
from fitcheck.cli.plot_edge_terminal import drawing as edge_drawing
from fitcheck.cli.plot_file import draw
from fitcheck.cli.plot_terminal import drawing
from fitcheck.engine.advisor import advise
from fitcheck.engine.api import estimate, rules_for
from fitcheck.engine.edge import FITS, NOTHING, SAFE, edge
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.plots import Picture
from fitcheck.engine.report import Report
from fitcheck.engine.stacks import Stack

LLAMA = "meta-llama/Llama-3.1-8B"
GOLDEN = {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True}


@pytest.fixture(scope="module")
def golden() -> Report:
    return estimate(LLAMA, gpu="4090", **GOLDEN)


def stacks(report: Report) -> dict[str, Stack]:
    return {p.id: p for p in report.pictures() if isinstance(p, Stack)}


def curves(report: Report) -> dict[str, Picture]:
    return {p.id: p for p in report.pictures() if isinstance(p, Picture)}


RUNS = [
    (LLAMA, "4090", GOLDEN),
    ("Qwen/Qwen3-30B-A3B", "h100", {"qlora": True}),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "4090", {"qlora": True, "images": 2, "seq_len": 8192}),
    ("HuggingFaceTB/SmolLM2-1.7B", "h200", {"lora": False}),
    ("Qwen/Qwen2.5-7B", "t4", {"precision": "fp16", "quant": "nf4", "grad_checkpoint": True}),
]


@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS)
def test_every_column_adds_up_to_its_phase(model: str, gpu: str, flags: dict[str, object]) -> None:
    report = estimate(model, gpu=gpu, **flags)
    found = stacks(report)
    phases = found["phases"]
    assert {c.id: c.total for c in phases.columns} == report.phases
    for column in (*phases.columns, *found["stack"].columns):
        assert sum(part.bytes for part in column.parts) == column.total
    assert phases.highest.total == max(report.phases.values()) == report["total"]
    assert found["stack"].highest.total == report["total"]
    assert phases.low == report["total_low"] and phases.high == report["total_high"]
    assert phases.limit == ("usable", report["usable"])


def test_a_reserve_is_marked_where_there_is_one() -> None:
    flags = {"precision": "fp16", "quant": "nf4", "grad_checkpoint": True, "seq_len": 1024}
    report = estimate("Qwen/Qwen2.5-7B", gpu="t4", **flags)
    assert report["safe_total"] > report["total"]
    assert stacks(report)["stack"].marks == (("with the reserve", report["safe_total"]),)


@pytest.mark.parametrize(
    ("picture", "flag", "wall"),
    [
        ("batch", "batch_size", "max_batch_size"),
        ("sequence", "seq_len", "max_seq_len"),
        ("rank", "lora_r", "max_lora_r"),
    ],
)
def test_points_are_estimates_and_the_wall_is_the_search(
    golden: Report, picture: str, flag: str, wall: str
) -> None:
    (series,) = curves(golden)[picture].series
    assert series.longest == golden[wall]
    for x in (series.x[0], series.x[len(series.x) // 2], series.x[-1]):
        there = estimate(LLAMA, gpu="4090", **{**GOLDEN, flag: x})
        assert series.at_x(x) == there["total"]
    assert golden.run.flag(flag) in series.x
    if wall != "max_lora_r":
        assert series.at_x(golden[wall]) <= golden["usable"]


def test_a_full_fine_tune_has_no_picture_of_ranks() -> None:
    report = estimate("HuggingFaceTB/SmolLM2-1.7B", gpu="h200", lora=False)
    assert "rank" not in curves(report) and "batch" in curves(report)
    with pytest.raises(InputProblem, match="no picture `rank` of this run"):
        report.pictures("rank")
    with pytest.raises(InputProblem, match="Did you mean `phases`"):
        report.pictures("phase")


def test_files_are_the_same_for_the_same_run_and_name_what_they_show(golden: Report) -> None:
    made = draw(golden, "svg")
    assert made == draw(golden, "svg") and draw(golden, "png").startswith(b"\x89PNG")
    text = made.decode()
    assert text.startswith("<?xml") and len(draw(golden, "svg", ["phases"])) < len(made)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_terminals_of_every_width(golden: Report, width: int, encoding: str) -> None:
    lines = [line.plain for line in drawing(golden, width, encoding)]
    assert all(cell_len(line) <= width for line in lines)
    assert encoding == "utf-8" or all(line.isascii() for line in lines)
    text = "\n".join(lines)
    for title in ("Memory by phase", "What the peak is made of", "Total by micro-batch"):
        assert title in text
    assert "peak" in text and "fits up to 2" in text and "not even 1 fits" in text


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fitcheck", LLAMA, "--qlora", "--gpu", "4090", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_command_line_writes_and_refuses(tmp_path: Path) -> None:
    target = tmp_path / "run.svg"
    assert ran("--plot", str(target), "--picture", "stack").returncode == 0
    assert b"<svg" in target.read_bytes()
    wrong = ran("--plot", "-", "--picture", "stck")
    assert wrong.returncode == 2 and "Did you mean `stack`" in wrong.stderr
    alone = ran("--picture", "stack")
    assert alone.returncode == 2 and "--plot" in alone.stderr
    apart = ran("--plot", "-", "--json")
    assert "Memory by phase" in apart.stderr and apart.stdout.startswith("{")


# the edge of a sweep


def test_the_edge_says_what_every_point_says() -> None:
    advice = advise(
        rules_for(), LLAMA, {"qlora": True, "flash_attn": True, "seq_lens": "512,2048,8192"}, {}
    )
    found = edge(advice)
    assert found.marks[0].total == advice.frontier[0].total
    for spot in found.spots[:: len(found.spots) // 6]:
        states = []
        for batch in advice.axes["batch_size"]:
            for length in advice.axes["seq_len"]:
                if batch * length == spot.x:
                    flags = {"batch_size": batch, "seq_len": length, "lora_r": spot.y}
                    there = estimate(LLAMA, gpu="4090", qlora=True, flash_attn=True, **flags)
                    states.append(SAFE if there.safe else FITS if there["fits"] else NOTHING)
        order = (NOTHING, FITS, SAFE)
        assert spot.state == max(states, key=order.index)
    assert draw_edge(found, advice, "svg") == draw_edge(found, advice, "svg")
    for encoding in ("utf-8", "ascii"):
        for width in (50, 80, 120):
            lines = [line.plain for line in edge_drawing(found, width, encoding)]
            assert all(cell_len(line) <= max(width, 60) for line in lines)
            assert "edge" in "\n".join(lines)


def test_too_many_points_are_no_picture() -> None:
    advice = advise(
        rules_for(),
        LLAMA,
        {"qlora": True, "seq_lens": "64..4096:8", "batch_sizes": "1..8:1", "lora_ranks": "8..64:4"},
        {},
    )
    with pytest.raises(InputProblem, match="at most 20,000 points"):
        edge(advice)
