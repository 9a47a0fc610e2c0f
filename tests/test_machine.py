"""`--gpu auto`: what the tools of this machine say, read from outputs as they print them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fitcheck.cli import start
from fitcheck.cli.errors import guarded
from fitcheck.engine.api import choose_card, estimate, rules_for
from fitcheck.engine.cards import Card
from fitcheck.engine.errors import InputProblem, Refusal
from fitcheck.engine.machine import amd, choosing, nvidia, tools
from fitcheck.engine.machine.device import WDDM
from fitcheck.engine.template import MIB

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins for the tools are scripts")

SAID = Path(__file__).parent / "machines"
MODEL = "Qwen/Qwen2.5-0.5B"
FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running."
)
Tool = Callable[..., None]


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without any tool and without variables that hide cards."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(tools, "PLACES", ())
    monkeypatch.setattr(nvidia, "KERNEL", str(tmp_path / "no-such-file"))
    for name in (
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ROCM_PATH",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    choosing._last.clear()
    yield
    choosing._last.clear()


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """`tool("nvidia-smi", {"-q": "t4.xml"})`: a program that prints a file for a first word."""

    def install(
        name: str, files: dict[str, str] | None = None, says: str = "", status: int = 0
    ) -> None:
        cases = "".join(
            f"  {word}) exec /bin/cat {shlex.quote(str(SAID / file))};;\n"
            for word, file in (files or {}).items()
        )
        script = tmp_path / "bin" / name
        script.write_text(
            f'#!/bin/sh\ncase "$1" in\n{cases}esac\necho {shlex.quote(says)}\nexit {status}\n',
            encoding="utf-8",
        )
        script.chmod(0o755)

    return install


def card(name: str = "auto") -> Card:
    return choose_card(rules_for(), name, None)


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = guarded(lambda: start.run(words))
    return status, out.getvalue(), err.getvalue()


def usable_mib(name: str = "auto", **flags: Any) -> float:
    return float(estimate(MODEL, gpu=name, qlora=True, **flags)["usable"]) / MIB


@pytest.mark.parametrize(
    ("file", "key", "total", "free", "usable"),
    [
        ("t4.xml", "t4", 15360, 15101, 14000),  # the file's figure is less than what is free
        ("h100.xml", "h100", 81559, 80995, 79000),
        ("3060_laptop_wddm.xml", "3060-laptop", 6144, 5151, 5151 - 850),
        ("unknown_card.xml", "custom", 49140, 48000, 46683),  # 95 % of the total
        ("4090_48gb.xml", "custom", 49140, 48736, 46683),  # its name, but twice its memory
    ],
)
def test_a_card_is_found_by_name_and_memory(
    tool: Tool, file: str, key: str, total: int, free: int, usable: int
) -> None:
    tool("nvidia-smi", {"-q": file})
    found = card()
    assert (found.id, found.total // MIB, found.free // MIB) == (key, total, free)
    assert usable_mib() == usable


def test_of_two_cards_the_one_with_more_free_memory_is_taken_and_the_other_said(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    found = card()
    assert found.here["selector"] == "auto:1" and found.free == 24200 * MIB
    assert found.note == (
        "--gpu auto:1 is NVIDIA GeForce RTX 4090 (it has the most free memory); there is also "
        "auto:0 NVIDIA GeForce RTX 4090 with 6,109 MiB free. 24,200 of 24,564 MiB are free now."
    )


def test_other_processes_and_a_display_leave_less_of_a_card(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    assert usable_mib("auto:0") == 6109 - 400  # a display is on it
    note = card("auto:0").note
    assert "3 processes (python3 17,420 MiB, Xorg 448 MiB, gnome-shell 175 MiB)" in note
    processes = card("AUTO:0").here["processes"]
    assert {"pid": 19044, "name": "python3", "used_mib": 17420.0} in processes


def test_slices_are_cards_of_their_own_with_the_processes_inside(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "a100_mig.xml", "-L": "a100_mig.list"})
    first, second = card("auto:0"), card("auto:MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d")
    assert first.id == second.id == "a100-40" and not first.listed
    assert first.title == "NVIDIA A100-SXM4-40GB, MIG 3g.20gb (this machine)"
    assert "CUDA_VISIBLE_DEVICES=MIG-c7384736-a75d-5afc-978f-d2f1294409fd" in first.note
    assert [p["pid"] for p in first.here["processes"]] == [41394]
    assert second.here["processes"] == [] and second.here["index"] == "0:1"
    assert usable_mib("auto:0") == 14165  # what is free
    assert usable_mib("auto:1") == 9363  # 95 % of 9,856, less than what is free
    with pytest.raises(InputProblem, match="MIG is on and it is not cut into slices"):
        card("auto:2")


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("1", ["1"]),
        ("1,0", ["1", "0"]),
        ("GPU-1b724e78", ["1"]),
        ("0,7,1", ["0"]),  # nothing behind a number that there is not
        ("", []),
        ("-1", []),
        ("0,0", ["0"]),
    ],
)
def test_the_variable_of_cuda_hides_and_orders_cards(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, words: str, taken: list[str]
) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", words)
    assert [device.index for device in choosing.entries()] == taken
    if not taken:
        with pytest.raises(InputProblem, match=r"CUDA_VISIBLE_DEVICES='-?1?' hides every card"):
            card()


def test_a_slice_can_be_chosen_by_the_variable(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("nvidia-smi", {"-q": "a100_mig.xml", "-L": "a100_mig.list"})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d")
    assert card().title == "NVIDIA A100-SXM4-40GB, MIG 2g.10gb (this machine)"


def test_cards_of_amd(tool: Tool) -> None:
    tool("rocm-smi", {"--showproductname": "mi300x_rocm.json"})
    found = card()
    assert found.id == "mi300x" and found.here["selector"] == "auto:1"
    assert found.total == 206141652992 and found.free == 206141652992 - 297680896
    assert usable_mib("auto:0") * MIB == 206141652992 - 150317039616


def test_graphics_of_a_processor_is_no_card(tool: Tool) -> None:
    tool("rocm-smi", {"--showproductname": "7900xtx_rocm.json"})
    found = card()
    assert (found.id, found.free) == ("custom", 25753026560 - 1265123328)
    assert "graphics of the processor" in found.note
    with pytest.raises(InputProblem, match="graphics of the processor"):
        card("auto:1")


def test_amd_smi_is_asked_where_rocm_smi_is_not_there(tool: Tool, tmp_path: Path) -> None:
    tool(
        "amd-smi",
        {
            "static": "mi300x_amd_static.json",
            "metric": "mi300x_amd_metric.json",
            "process": "mi300x_amd_process.json",
        },
    )
    found = card()
    assert (found.id, found.free, found.here["source"]) == ("mi300x", 196309 * MIB, "amd-smi")
    assert found.here["processes"] == [{"pid": 4242, "name": "vllm", "used_mib": 100.0}]


def test_where_there_is_nothing_it_says_what_was_tried(tool: Tool) -> None:
    status, out, err = run(MODEL, "--gpu", "auto")
    assert (status, out) == (2, "")
    assert (
        "finds no GPU that can be used: nvidia-smi is not installed; rocm-smi is not installed; "
        "amd-smi is not installed. Name a card instead, such as --gpu 4090"
    ) in err


@pytest.mark.parametrize(
    ("says", "status", "told"),
    [
        (FAILED, 9, "ended with status 9: NVIDIA-SMI has failed because it couldn't communicate"),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "version mismatch"),
        ("Failed to initialize NVML: Insufficient Permissions", 4, "Insufficient Permissions"),
        ("No devices were found", 6, "No devices were found"),
        ("No devices were found", 0, "an answer that is no XML"),
        ("<nvidia_smi_log></nvidia_smi_log>", 0, "nvidia-smi knows no card"),
        ("<html><body/></html>", 0, "an answer of another kind"),
        ("\x1b[31mbroken\x1b[0m", 3, "?[31mbroken?[0m"),
    ],
)
def test_a_tool_that_fails_is_quoted(tool: Tool, says: str, status: int, told: str) -> None:
    tool("nvidia-smi", says=says, status=status)
    code, _, err = run(MODEL, "--gpu", "auto")
    assert code == 2 and told in err and "Traceback" not in err and "\x1b" not in err


def test_a_tool_that_hangs_or_may_not_run(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "SECONDS", 0.2)
    script = tmp_path / "bin" / "nvidia-smi"
    script.write_text("#!/bin/sh\nexec /bin/sleep 30\n", encoding="utf-8")
    script.chmod(0o755)
    assert nvidia.devices().problem == "gave no answer within 0.2 seconds"
    script.write_text("#!/no/such/shell\n", encoding="utf-8")
    assert nvidia.devices().problem.startswith("could not be started: No such file")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"card0": 3}',
        '{"card0": {"VRAM Total Memory (B)": "much"}}',
        "\0" * 9,
    ],
)
def test_what_is_no_answer_of_amd_gives_no_card(text: str) -> None:
    assert not any(device.usable for device in amd.read_rocm(text).devices)
    assert not any(device.usable for device in amd.read_amd(text, text, text).devices)


def test_a_driver_that_does_not_tell_the_memory(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "no_memory.xml"})
    with pytest.raises(InputProblem, match="NVIDIA GB10: the driver does not say how much memory"):
        card()


def test_a_card_that_others_fill_is_refused(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "full.xml"})
    with pytest.raises(Refusal, match="are free now, which leaves nothing for a run"):
        estimate(MODEL, gpu="auto", qlora=True)


def test_linux_inside_windows_has_the_allowance_of_windows(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "osrelease"
    kernel.write_text("5.15.153.1-microsoft-standard-WSL2\n", encoding="utf-8")
    monkeypatch.setattr(nvidia, "KERNEL", str(kernel))
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    assert card("auto:1").display == WDDM
    assert usable_mib("auto:1") == min(23500, 24200 - 850)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("auto:2", "--gpu auto:2: this machine has auto:0 to auto:1."),
        ("auto:GPU-nope", "names no card of this machine; write a position such as auto:0"),
        ("auto:GPU-", "names no card of this machine"),
    ],
)
def test_a_card_that_is_not_there(tool: Tool, name: str, told: str) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    status, _, err = run(MODEL, "--gpu", name, "--json")
    assert status == 2 and told in err


def test_its_memory_is_not_given_twice() -> None:
    status, _, err = run(MODEL, "--gpu", "auto", "--vram-mib", "9000")
    assert status == 2 and "leave out --vram-mib" in err


def test_the_json_says_what_is_free_and_where_from(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    status, out, err = run(MODEL, "--qlora", "--gpu", "auto:0", "--json")
    block = json.loads(out)["gpu"]
    assert status == 1 and "note:" in err
    assert block["name"] == "NVIDIA GeForce RTX 4090 (this machine)" and block["key"] == "4090"
    assert block["source"] == "nvidia-smi" and block["display"] == "display"
    assert (block["vram_mib"], block["free_mib"], block["usable_mib"]) == (24564, 6109.0, 5709)
    assert len(block["processes"]) == 3


def test_the_derivation_says_where_the_figures_come_from(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    text = estimate(MODEL, gpu="auto:0", qlora=True).derive("usable")
    assert "6,405,750,784" in text and "nvidia-smi on this machine" in text


def test_a_report_survives_the_way_to_another_machine(tool: Tool, tmp_path: Path) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    report = estimate(MODEL, gpu="auto:0", qlora=True)
    kept = pickle.dumps(report)
    (tmp_path / "bin" / "nvidia-smi").unlink()
    choosing._last.clear()
    again = pickle.loads(kept)
    assert again["usable"] == report["usable"] and again.status == report.status


def test_the_cards_of_the_machine_as_a_list(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("nvidia-smi", {"-q": "a100_mig.xml", "-L": "a100_mig.list"})
    status, out, _ = run("--gpu", "auto", "--list-gpus", "--json")
    shown = json.loads(out)["gpus"]
    assert status == 0 and [entry["selector"] for entry in shown] == ["auto:0", "auto:1", "auto:2"]
    assert shown[0]["slice"] == "3g.20gb" and shown[0]["key"] == "a100-40"
    assert shown[2]["problem"] == "MIG is on and it is not cut into slices"
    monkeypatch.setenv("COLUMNS", "160")
    status, out, _ = run("--gpu", "auto", "--list-gpus")
    assert status == 0 and "14,165" in out and "python 5,906 MiB" in out
    (line,) = [line for line in out.splitlines() if line.startswith("auto:1")]
    assert "9,844" in line and "MIG 2g.10gb" in line


def test_a_list_of_no_cards_is_an_error() -> None:
    status, out, err = run("--gpu", "auto", "--list-gpus")
    assert (status, out) == (2, "") and "nvidia-smi is not installed" in err


def test_the_tools_are_asked_once_for_one_answer(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("nvidia-smi", {"-q": "t4.xml"})
    monkeypatch.setattr(choosing, "AGAIN", 1e9)
    asked: list[str] = []
    before = tools.ask

    def counted(program: str, *rest: Any) -> tools.Said:
        asked.append(program)
        return before(program, *rest)

    monkeypatch.setattr(nvidia, "ask", counted)
    assert run(MODEL, "--qlora", "--gpu", "auto", "--json")[0] == 0
    assert asked == ["nvidia-smi"]


def test_cards_of_the_machine_are_compared_with_others(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    words = ("compare", MODEL, "auto:0", "auto:1", "auto:1", "4090", "--qlora")
    status, out, _ = run(*words, "--json")
    lines = {line.get("selector", line["key"]): line for line in json.loads(out)["cards"]}
    assert status == 0 and set(lines) == {"auto:0", "auto:1", "4090"}
    assert lines["auto:0"]["capacity_mib"] == 5709.0 and lines["auto:0"]["key"] == "4090"
    assert not lines["auto:0"]["fits"] and lines["auto:1"]["safe_fits"]
    _, out, _ = run(*words)
    assert [line.split()[0] for line in out.splitlines() if line.startswith("auto:")] == [
        "auto:1",
        "auto:0",
    ]


def test_a_run_is_optimized_for_what_is_free(tool: Tool) -> None:
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    _, out, _ = run("optimize", MODEL, "--qlora", "--gpu", "auto:0", "--json")
    found = json.loads(out)
    assert found["gpu"]["usable_mib"] == 5709 and found["gpu"]["selector"] == "auto:0"
    for proposal in found["proposals"]:
        words = shlex.split(proposal["command"])[1:]
        assert words[-2:] == ["--gpu", "auto:0"]
        said = json.loads(run(*words, "--json")[1])
        assert said["memory_mib"]["total"] == proposal["total_mib"]
        assert said["verdict"]["status"] == proposal["status"]


def test_vllm_needs_its_share_of_the_whole_card_to_be_free(tool: Tool) -> None:
    """`Free memory on device ... is less than desired GPU memory utilization` ends its start."""
    tool("nvidia-smi", {"-q": "4090_two.xml"})
    small: dict[str, Any] = {"mode": "serving", "engine": "vllm", "engine_version": "0.11"}
    report = estimate(MODEL, gpu="auto:0", **small)
    assert report["serving_fits"] and not report.safe
    (said,) = [text for text in report.warnings if "does not start" in text]
    assert (
        "6,109 MiB of 24,564 MiB are free now" in said and "--memory-fraction 0.24 or less" in said
    )
    assert not [t for t in estimate(MODEL, gpu="auto:1", **small).warnings if "not start" in t]
    less = estimate(MODEL, gpu="auto:0", memory_fraction=0.24, **small)
    assert not [text for text in less.warnings if "not start" in text]


def test_a_program_in_the_current_folder_is_not_started(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("nvidia-smi", {"-q": "t4.xml"})
    monkeypatch.setenv("PATH", ".")
    monkeypatch.chdir(tmp_path / "bin")
    assert nvidia.devices().problem == "is not installed"
