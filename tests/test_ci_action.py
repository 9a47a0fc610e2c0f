"""The GitHub Action: its steps as a runner takes them, its files, its annotations and summary."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = ROOT / ".github/actions/fitcheck"
QLORA = (ROOT / "tests/importers/axolotl/qlora.yml").read_text(encoding="utf-8")

if sys.platform == "win32":
    pytest.skip("the action runs in bash", allow_module_level=True)


def action() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    return data


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A workspace, with fitcheck where the action would install it."""
    venv = tmp_path / "temp/fitcheck/venv/bin"
    venv.mkdir(parents=True)
    for name, words in (("python", '"$@"'), ("fitcheck", '-m fitcheck "$@"')):
        file = venv / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n', encoding="utf-8")
        file.chmod(0o755)
    (tmp_path / "work/configs").mkdir(parents=True)
    return tmp_path


def step(job: Path, **inputs: str) -> tuple[int, str, str, str]:
    """Run the step of action.yml as a runner does: (status, output, summary, outputs)."""
    (run,) = [s for s in action()["runs"]["steps"] if "run" in s]
    given = {name: spec.get("default", "") for name, spec in action()["inputs"].items()} | inputs
    environment = {**os.environ, "RUNNER_TEMP": str(job / "temp")}
    for name, value in run["env"].items():
        for key, text in given.items():
            value = value.replace(f"${{{{ inputs.{key} }}}}", text)
        environment[name] = value.replace("${{ github.action_path }}", str(ACTION))
        assert "${{" not in environment[name]
    for variable in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        (job / variable).write_text("", encoding="utf-8")
        environment[variable] = str(job / variable)
    done = subprocess.run(
        ["bash", "-e", "-c", run["run"]],
        cwd=job / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    summary, outputs = (
        (job / name).read_text(encoding="utf-8")
        for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, summary, outputs


def put(job: Path, name: str, text: str) -> None:
    (job / "work/configs" / name).write_text(text, encoding="utf-8")


LONG = QLORA.replace("sequence_len: 4096", "sequence_len: 65536")


def test_every_input_is_used_and_every_output_is_set() -> None:
    text = (ACTION / "action.yml").read_text(encoding="utf-8")
    for name, spec in action()["inputs"].items():
        assert f"inputs.{name} " in text and spec["description"]
    assert {*action()["outputs"]} == {"status", "json"}


def test_what_fits_passes(job: Path) -> None:
    put(job, "a.yml", QLORA)
    status, out, summary, outputs = step(job, files="configs/*.yml", gpu="h200")
    assert status == 0 and out.startswith("::notice file=configs/a.yml,line=")
    assert "| `configs/a.yml` | safe |" in summary
    assert "status=safe\n" in outputs and "json=" in outputs


def test_what_does_not_fit_fails_with_the_reason_at_its_line(job: Path) -> None:
    put(job, "a.yml", QLORA)
    put(job, "b.yml", LONG)
    status, out, summary, outputs = step(job, files="configs/*.yml", gpu="h200")
    (error,) = [line for line in out.splitlines() if line.startswith("::error")]
    line = LONG.splitlines().index("micro_batch_size: 2") + 1
    assert status == 1
    assert error.startswith(
        f"::error file=configs/b.yml,line={line},title=fitcheck%3A does not fit::"
    )
    assert "MiB on NVIDIA H200" in error and "would need" in error
    assert "does not fit" in summary and "status=does_not_fit\n" in outputs


def test_uncertain_fails_or_not(job: Path) -> None:
    put(job, "a.yml", QLORA + "my_key: 1\n")
    assert step(job, files="configs/a.yml", gpu="h200")[0] == 1
    status, out, _, outputs = step(
        job, files="configs/a.yml", gpu="h200", **{"fail-on": "does_not_fit"}
    )
    assert status == 0 and out.startswith("::warning ") and "status=uncertain\n" in outputs
    assert step(job, files="configs/a.yml", gpu="h200", **{"fail-on": "never"})[0] == 2


def test_a_broken_file_a_wrong_card_and_no_file_are_errors(job: Path) -> None:
    put(job, "a.yml", "base_model: m\nadapter: ia3\n")
    status, out, _, outputs = step(job, files="configs/a.yml", gpu="h200")
    assert status == 1 and ",line=2," in out and "status=error\n" in outputs
    assert step(job, files="configs/a.yml", gpu="nope")[0] == 2
    status, out, _, _ = step(job, files="nothing/*.yml", gpu="h200")
    assert status == 2 and "No file matches" in out


def test_what_failed_before_only_warns(job: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
            cwd=job / "work",
            check=True,
            capture_output=True,
        )

    put(job, "old.yml", LONG)
    put(job, "new.yml", QLORA)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    status, out, _, _ = step(job, files="configs/*.yml", gpu="h200", base="HEAD")
    assert status == 0 and "::warning file=configs/old.yml" in out and "before this change" in out
    put(job, "new.yml", LONG)
    status, out, _, _ = step(job, files="configs/*.yml", gpu="h200", base="HEAD")
    assert status == 1 and "::error file=configs/new.yml" in out


def committed(job: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "base"]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
            cwd=job / "work",
            check=True,
            capture_output=True,
        )


def test_a_base_excuses_nothing_that_is_new_or_worse(job: Path) -> None:
    put(job, "broken.yml", "a: [\n")
    put(job, "doubt.yml", QLORA + "my_key: 1\n")
    committed(job)
    put(job, "new.yml", LONG)
    put(job, "broken.yml", LONG)
    put(job, "doubt.yml", LONG + "my_key: 1\n")
    for name in ("new", "broken", "doubt"):
        status, out, _, _ = step(job, files=f"configs/{name}.yml", gpu="h200", base="HEAD")
        assert status == 1 and out.startswith(f"::error file=configs/{name}.yml"), name


def test_a_base_that_is_not_there_excuses_nothing(job: Path) -> None:
    put(job, "a.yml", LONG)
    committed(job)
    assert step(job, files="configs/a.yml", gpu="h200", base="HEAD")[0] == 0
    status, out, _, _ = step(job, files="configs/a.yml", gpu="h200", base="0" * 40)
    assert status == 1 and "::error file=configs/a.yml" in out
    assert out.startswith("::warning title=fitcheck::The base") and "is not there" in out


def test_a_line_of_files_may_have_spaces_and_options_are_split(job: Path) -> None:
    put(job, "my run.yml", QLORA)
    files = "  configs/my run.yml\r\n\n"
    assert step(job, files=files, gpu="h200")[0] == 0
    status, out, _, _ = step(job, files=files, gpu="h200", args="--seq-len 65536 --batch-size 2")
    assert status == 1 and out.startswith("::error file=configs/my run.yml")


def test_the_example_of_the_docs_fits() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    (use,) = [s for s in workflow["jobs"]["example"]["steps"] if "with" in s and "gpu" in s["with"]]
    words = ["check", str(ROOT / use["with"]["files"]), "--gpu", use["with"]["gpu"]]
    assert subprocess.run([sys.executable, "-m", "fitcheck", *words]).returncode == 0


def test_the_hook_is_one_that_pre_commit_takes() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["id"] == "fitcheck" and hook["entry"] == "fitcheck check"
    assert hook["language"] == "python" and hook["types_or"] == ["yaml", "json"]
