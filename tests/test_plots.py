"""Pictures: every point is an estimate, files are whole, and nothing that draws comes unasked."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from functools import lru_cache
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.cells import cell_len

from fitcheck import Report, estimate
from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run as run_click
from fitcheck.cli.plot_frame import amount, apart, count, even, frame, head, powers
from fitcheck.cli.plot_terminal import drawing
from fitcheck.engine.checks import check_all
from fitcheck.engine.loading import Loader, roots_of
from fitcheck.engine.pictures import pictures
from fitcheck.engine.plots import PER_DOUBLING, Picture, grid

REPO = Path(__file__).resolve().parents[1]
LLAMA, GEMMA, MAMBA = (
    "meta-llama/Llama-3.1-8B",
    "google/gemma-3-27b-it",
    "state-spaces/mamba-2.8b-hf",
)
MLA, HYBRID = "deepseek-ai/DeepSeek-V2-Lite", "Qwen/Qwen3-Next-80B-A3B-Instruct"
RUNS: list[tuple[str, str, dict[str, Any]]] = [
    (LLAMA, "4090", {}),
    (LLAMA, "t4", {}),  # not even one token fits
    (LLAMA, "t4", {"quant": "nf4", "seq_len": 100}),  # left of where the axis begins
    (GEMMA, "h100", {"concurrent": 12, "seq_len": 8192}),
    (MAMBA, "4090", {}),  # no length is too long
    (MLA, "h100", {"concurrent": 16, "seq_len": 200_000}),  # above the card
    (HYBRID, "b200", {"seq_len": 4096, "concurrent": 8}),
    ("google/gemma-3-1b-it", "h200", {"seq_len": 16_777_216}),  # the largest that the flag takes
    (LLAMA, "h200", {"seq_len": 1, "concurrent": 1_048_576}),
    (GEMMA, "h100", {"engine": "vllm", "concurrent": 12, "seq_len": 8192}),  # pages and a band
]
IDS = [f"{model.split('/')[1]} {gpu} {flags}" for model, gpu, flags in RUNS]


@lru_cache(maxsize=64)  # frozen, and its pictures are computed once
def serve(model: str = LLAMA, gpu: str = "4090", **flags: Any) -> Report:
    return estimate(model, mode="serving", gpu=gpu, source="catalogue", **flags)


def by_id(report: Report) -> dict[str, Picture]:
    return {p.id: p for p in report.pictures() if isinstance(p, Picture)}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("FITCHECK_RULES", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)


# the points


@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS, ids=IDS)
def test_every_point_is_an_estimate(model: str, gpu: str, flags: dict[str, Any]) -> None:
    report = serve(model, gpu, **flags)
    found = by_id(report)
    assert list(found) == ["card", "cache", "token"]
    for picture in found.values():
        assert picture.here == report.prepared.settings.values["seq_len"]
        for series in picture.series:
            assert picture.here in series.x and list(series.x) == sorted({*series.x})
            for x in {series.x[7], series.x[-9], picture.here}:
                alone = serve(model, gpu, **{**flags, **series.at, "seq_len": x})
                divisor = x if series.label == "average" else 1
                assert series.at_x(x) == Fraction(alone[series.quantity], divisor)
    (chosen,) = found["card"].chosen
    assert chosen.at_x(picture.here) == report["serving_total"]
    assert found["card"].limit == ("for the engine", report["serving_budget"])


@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS, ids=IDS)
def test_curves_end_where_the_search_of_the_estimate_ends(
    model: str, gpu: str, flags: dict[str, Any]
) -> None:
    picture = by_id(serve(model, gpu, **flags))["card"]
    assert picture.limit is not None
    for series in picture.series:
        alone = serve(model, gpu, **{**flags, **series.at})
        if series.longest is None:
            assert alone.run.value("max_context") == 16_777_216
            continue
        assert series.longest == alone["max_context"]
        if series.longest:
            assert series.at_x(series.longest) <= picture.limit[1]
            after = serve(model, gpu, **{**flags, **series.at, "seq_len": series.longest + 1})
            assert after["serving_total"] > picture.limit[1]


def test_concurrencies_are_powers_of_two_and_that_of_the_run() -> None:
    def drawn(**flags: Any) -> list[int]:
        return [s.at["concurrent"] for s in by_id(serve(**flags))["card"].series]

    assert drawn() == [1, 2, 4, 8, 16, 32, 64, 128]
    assert drawn(concurrent=12) == [1, 2, 4, 8, 12, 32, 64, 128]
    assert drawn(concurrent=500) == [1, 2, 4, 8, 16, 32, 64, 128, 500]
    assert drawn(gpu="t4") == [1]
    assert drawn(model=MLA, gpu="h100") == [1, 4, 16, 64, 256, 1024, 4096]


def test_a_window_is_seen_to_flatten_where_it_is_full() -> None:
    average, following = by_id(serve(GEMMA, "h100"))["token"].series
    assert following.at_x(1022) > following.at_x(1023)  # the next token is number 1,024 of 1,024
    assert len({*following.y}) == 2
    assert average.at_x(1024) > average.at_x(8192) > following.y[-1]


def test_a_state_alone_takes_nothing_more() -> None:
    found = by_id(serve(MAMBA))
    average, following = found["token"].series
    assert {*following.y} == {0}
    assert len({*found["cache"].series[0].y}) == 1
    assert average.y[0] == average.at_x(512) * 2


def test_what_may_be_too_low_says_so() -> None:
    series = by_id(serve())["card"].series
    assert [s.at["concurrent"] for s in series if s.too_low] == [8, 16, 32, 64, 128]
    assert {s.grade for s in series} == {str(serve().grade("serving_total"))} == {"assumed"}


def test_the_points_are_json() -> None:
    data = json.loads(json.dumps([p.to_dict() for p in pictures(serve())]))
    card = next(picture for picture in data if picture["id"] == "card")
    assert card["limit"] == {"label": "for the engine", "bytes": 24_641_536_000}
    first = card["series"][0]
    assert first["y"][first["x"].index(2048)] == serve()["serving_total"]
    assert {*first} == {
        "label", "quantity", "at", "chosen", "x", "y", "low", "high", "longest", "grade", "too_low",
    }  # fmt: skip
    assert len(first["x"]) == len(first["y"]) == len(first["low"]) == len(first["high"])


def test_the_grid_is_even_and_whole() -> None:
    xs = grid(256, 65536, [1000, 5, 99999])
    assert xs[:3] == [256, 288, 320] and xs[-1] == 65536 and 1000 in xs and 5 not in xs
    assert len(xs) == 8 * PER_DOUBLING + 2
    assert grid(1, 4, []) == [1, 2, 3, 4]


# what the mode file says


def changed(tmp_path: Path, *changes: tuple[str, str]) -> str:
    """An overlay with the mode file, in which each first text is replaced by the second."""
    target = tmp_path / "formulas/serving"
    target.mkdir(parents=True)
    text = (REPO / "formulas/serving/mode.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (target / "mode.yaml").write_text(text, encoding="utf-8")
    return str(tmp_path)


WRONG = [  # what is changed, and for each change a code and a part of the message
    [
        (("scale: log", "scale: logarithmic"), "F108", "scale"),
        (("jumps: true", "jump: true"), "F101", "jump"),
    ],
    [
        (
            ("quantity: serving_budget", "quantity: serving_bugdet"),
            "F201",
            "Did you mean `serving_budget`",
        ),
        (("longest: max_context", "longest: max_concurrent"), "F216", "no search for the largest"),
        (("over: {flag: concurrent", "over: {flag: concurent"), "F201", "is no flag of this mode"),
        (('label: "{n} at', 'label: "{m} at'), "F211", "m"),
        (("quantity: kv_cache_per_token", "quantity: parameters"), "F205", "pictures show bytes"),
        ((", label: cache}", "}"), "F107", "A curve needs a `label`"),
    ],
    [(("over: {flag: concurrent", "over: {flag: quant"), "F106", "no whole number")],
]


@pytest.mark.parametrize("cases", WRONG, ids=lambda c: c[0][1])
def test_what_is_wrong_with_a_picture_is_said(
    cases: list[tuple[tuple[str, str], str, str]], tmp_path: Path
) -> None:
    folder = changed(tmp_path, *(change for change, _, _ in cases))
    _, problems = check_all(Loader(roots_of([folder]), mode="serving"))
    for _, code, says in cases:
        assert [p for p in problems if p.code == code and says in p.message], (code, problems)


def test_other_pictures_need_no_code(tmp_path: Path) -> None:
    drawn = "{quantity: kv_cache_per_request, label: cache}"
    folder = changed(tmp_path, (drawn, "{quantity: kv_cache, label: all of them}"))
    report = serve(rules=folder, concurrent=3)
    (series,) = by_id(report)["cache"].series
    assert series.label == "all of them"
    assert series.at_x(2048) == report["kv_cache"]


# bounds, ticks, labels


@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS, ids=IDS)
def test_nothing_leaves_a_picture(model: str, gpu: str, flags: dict[str, Any]) -> None:
    for picture in by_id(serve(model, gpu, **flags)).values():
        drawn = frame(picture, headroom=0.25)
        points = [point for line in drawn.lines for point in line.points] + list(drawn.here)
        assert all(0 <= drawn.across(x) <= 1 and 0 <= drawn.up(y) <= 1 for x, y in points)
        assert drawn.here and len(drawn.x_ticks(10)) >= 2 and len(drawn.y_ticks(7)) >= 2
        if picture.limit:
            assert drawn.up(float(picture.limit[1])) <= 0.751


def test_numbers_are_read_as_people_write_them() -> None:
    assert [count(n) for n in (512, 2048, 131072, 1 << 20)] == ["512", "2k", "128k", "1M"]
    assert amount(24_641_536_000) == "22.9 GiB"
    assert [amount(n) for n in (0, 3 << 30, 1536, 128 << 10)] == [
        "0 B",
        "3 GiB",
        "1.5 KiB",
        "128 KiB",
    ]
    assert powers(256, 65536, 10) == [1 << p for p in range(8, 17)]
    assert powers(256, 1 << 24, 5) == [256, 4096, 65536, 1 << 20, 1 << 24]
    assert even(0, 25 << 30, 5) == [n << 30 for n in (0, 5, 10, 15, 20, 25)]


def test_the_title_has_what_was_given_and_no_default() -> None:
    report = serve(engine="vllm", quant="nf4", seq_len=4096, concurrent=3)
    title, flags = head(report, [*by_id(report).values()])
    assert title == "Llama-3.1-8B on NVIDIA GeForce RTX 4090: fits"
    assert flags == "--quant nf4, --engine vllm"


def test_labels_are_moved_apart() -> None:
    assert apart([5, 5, 5], [2, 2, 2], 0, 10) == [5, 7, 9]
    assert apart([9, 9], [2, 2], 0, 10) == [7, 9]
    assert apart([1, 8], [2, 2], 0, 10) == [1, 8]


# the command


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def call(*words: str, encoding: str = "utf-8") -> Outcome:
    out, err = BytesIO(), StringIO()
    stream = TextIOWrapper(out, encoding=encoding, write_through=True)
    with redirect_stdout(stream), redirect_stderr(err):
        status = guarded(lambda: run_click([*words]))
    return Outcome(status, out.getvalue().decode(encoding), err.getvalue())


def chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG, each checked against its checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = [], 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(
            data[at + 8 + size : at + 12 + size], "big"
        )
        found.append((kind, body))
        at += 12 + size
    return found


@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS, ids=IDS)
def test_a_png_is_whole_and_shows_something(model: str, gpu: str, flags: dict[str, Any]) -> None:
    from fitcheck.cli.plot_file import draw

    parts = chunks(draw(serve(model, gpu, **flags), "png"))
    assert parts[0][0] == b"IHDR" and parts[-1] == (b"IEND", b"")
    assert struct.unpack(">II", parts[0][1][:8]) == (2355, 960)
    pixels = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    assert len({*pixels}) > 100


def test_an_svg_is_whole_and_the_same_every_time(tmp_path: Path) -> None:
    files = [tmp_path / "a.svg", tmp_path / "b.SVG"]
    for file in files:
        assert call("infer", LLAMA, "--plot", str(file)).status == 0
    text = files[0].read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    for said in ("Cache of one request", "16 at once", "to 3,294", "22.9 GiB for the engine", "32k",
                 "this run, 1 at once: 16.5 GiB", "evidence: assumed", "next token"):  # fmt: skip
        assert f"<!-- {said}" in text, said
    assert files[1].read_text(encoding="utf-8") == text


def test_any_name_of_a_model_is_drawn(recwarn: pytest.WarningsRecorder) -> None:
    from fitcheck.cli.plot_file import draw

    name = "a$x_{--><b>&$ \u6a21\u578b"
    config = {
        "_name_or_path": name, "model_type": "llama", "hidden_size": 2048, "vocab_size": 32000,
        "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
        "num_key_value_heads": 4, "tie_word_embeddings": False,
    }  # fmt: skip
    report = estimate(config, mode="serving")
    assert report.prepared.model.name == name
    ElementTree.fromstring(draw(report, "svg").decode("utf-8"))
    assert chunks(draw(report, "png"))
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]
    assert drawing(report, 80, "utf-8")[0].plain.startswith("a$x_{--><b>&$")


@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS, ids=IDS)
def test_no_label_lies_on_another_or_outside(model: str, gpu: str, flags: dict[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Annotation

    from fitcheck.cli.plot_file import figure

    made = figure(serve(model, gpu, **flags))
    FigureCanvasAgg(made).draw()
    for axes in made.axes:
        notes = [n for n in axes.texts if isinstance(n, Annotation) and n.get_text()]
        boxes = {n.get_text(): n.get_window_extent().padded(-2) for n in notes}
        assert len(boxes) >= 2
        for text, box in boxes.items():
            assert made.bbox.x0 <= box.x0 and box.x1 <= made.bbox.x1, text
            assert made.bbox.y0 <= box.y0 and box.y1 <= made.bbox.y1, text
            assert not [other for other, at in boxes.items() if other != text and box.overlaps(at)]


def test_an_old_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    file, link = tmp_path / "a.png", tmp_path / "link.png"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    outcome = call("infer", LLAMA, "--plot", str(link), "--json")
    assert outcome.status == 0 and f"note: the pictures are in {link}" in outcome.err
    assert link.is_symlink() and chunks(file.read_bytes())
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.png", "link.png"]


def test_a_file_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.png"
    file.write_text("old", encoding="utf-8")

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied", "elsewhere")

    monkeypatch.setattr(os, "replace", refuse)
    outcome = call("infer", LLAMA, "--plot", str(file))
    assert (outcome.status, outcome.out) == (2, "")
    assert f"--plot {file}: Permission denied." in outcome.err
    assert os.listdir(tmp_path) == ["a.png"] and file.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("target", ["x.pdf", "x", "", "x.png.gz", "-.jpg"])
def test_other_suffixes_are_refused(target: str) -> None:
    outcome = call("infer", LLAMA, f"--plot={target}")
    assert (outcome.status, outcome.out) == (2, "")
    assert "has to end in .png or .svg; - draws in the terminal" in outcome.err


def test_places_that_are_none_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder.png"
    folder.mkdir()
    outcome = call("infer", LLAMA, "--plot", str(tmp_path / "no/a.png"))
    assert (outcome.status, outcome.out) == (2, "")
    assert f"there is no folder {tmp_path / 'no'}" in outcome.err
    assert "this is a folder" in call("infer", LLAMA, "--plot", str(folder)).err
    assert "MODEL is missing: --plot" in call("infer", "--plot", "-").err


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "fitcheck.cli.plot_file", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # type: ignore[arg-type]
    file = tmp_path / "a.png"
    outcome = call("infer", LLAMA, "--plot", str(file))
    assert (outcome.status, outcome.out, file.exists()) == (2, "", False)
    assert "the extra fitcheck-llm[plot]" in outcome.err
    assert call("infer", LLAMA, "--plot", "-").status == 0


@pytest.mark.parametrize(
    "words", [[], ["--json"], ["--plot", "-"], ["--plot", "-", "--json"]], ids=str
)
def test_matplotlib_is_loaded_for_files_only(words: list[str], tmp_path: Path) -> None:
    program = (
        "import sys\nfrom fitcheck.cli.errors import guarded\nfrom fitcheck.cli.start import run\n"
        f"guarded(lambda: run({['infer', LLAMA, *words]!r}))\n"
        "print('loaded', *sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = {*done.stderr.rpartition("loaded ")[2].split()}
    assert "fitcheck.cli.answer" in loaded
    assert not {"matplotlib", "numpy"} & loaded
    assert ("fitcheck.cli.plot_terminal" in loaded) is ("--plot" in words)


def test_json_on_standard_output_stays_json(tmp_path: Path) -> None:
    alone = call("infer", LLAMA, "--json")
    for target in ("-", "terminal", str(tmp_path / "a.png")):
        beside = call("infer", LLAMA, "--json", "--plot", target)
        assert beside.out == alone.out and json.loads(beside.out)
        assert ("Cache of one request" in beside.err) is (target in ("-", "terminal"))
    derived = call("infer", LLAMA, "--derive", "--format", "json", "--plot", "-")
    assert json.loads(derived.out) and "Cache of one request" in derived.err


# the terminal


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize(("model", "gpu", "flags"), RUNS, ids=IDS)
def test_the_drawing_keeps_its_width(
    model: str, gpu: str, flags: dict[str, Any], width: int
) -> None:
    report = serve(model, gpu, **flags)
    for encoding in ("utf-8", "ascii", "latin-1", "no-such-encoding"):
        lines = [line.plain for line in drawing(report, width, encoding)]
        assert max(map(cell_len, lines)) <= width
        edges = [line for line in lines if line.lstrip().startswith(("└", "+"))]
        assert len(edges) == 3 and cell_len(edges[1]) == width
        assert all(line.isascii() for line in lines) is (encoding != "utf-8")
        assert sum(line.count("◆" if encoding == "utf-8" else "@") for line in lines) >= 6
        assert sum("evidence: " in line for line in lines) == 4


def test_the_command_draws_at_the_terminals_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("72", "110"):
        monkeypatch.setenv("COLUMNS", columns)
        text = call("infer", LLAMA, "--plot", "-").out
        edges = [line for line in text.splitlines() if line.lstrip().startswith("└")]
        assert len(edges) == 3 and len(edges[1]) == int(columns)
        assert call("infer", LLAMA, "--plot", "terminal").out == text


def test_a_pipe_gets_no_colours_and_only_signs_that_it_has() -> None:
    text = call("infer", LLAMA, "--plot", "-").out
    assert "\x1b" not in text and "⣀" in text
    assert "\x1b" not in call("infer", LLAMA, "--plot", "-", "--no-color").out
    plain = call("infer", LLAMA, "--plot", "-", encoding="ascii").out
    assert plain.isascii() and "?" not in plain
    assert "o 16 at once: to 3,294 (!)" in plain and "@ this run, 1 at once: 16.5 GiB" in plain


class Terminal(StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("words", "coloured"), [([], True), (["--no-color"], False)], ids=str)
def test_colours_in_a_terminal(
    words: list[str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        assert guarded(lambda: run_click(["infer", LLAMA, "--plot", "-", *words])) == 0
    below = out.getvalue().rpartition("Cache of one request")[2]
    assert ("\x1b[" in below) is coloured
