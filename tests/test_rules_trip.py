"""An editor's trip, as a new user would make it: eject, break, read, mend, estimate, derive, diff.

It is made twice: in this checkout, and with the package laid out as a wheel installs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from fitcheck.cli.main import cli

ROOT = Path(__file__).parents[1]
PACKAGED = ("engine", "cli", "formulas", "gpus", "profiles")
MODEL = "HuggingFaceTB/SmolLM2-135M"
RUN = [MODEL, "--no-lora", "--precision", "bf16", "--rules", "mine"]
Call = Callable[..., tuple[int, str]]


def here(*args: str) -> tuple[int, str]:
    found = CliRunner().invoke(cli, [*args])
    return found.exit_code, found.output


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """The command of a package without a checkout around it."""
    site = tmp_path_factory.mktemp("site")
    for name in PACKAGED:
        kept = shutil.ignore_patterns("__pycache__", "_fitcheck")
        shutil.copytree(ROOT / name, site / "fitcheck" / name, ignore=kept)
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / "engine/_fitcheck" / name, site / "fitcheck" / name)
    environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "100"}

    def call(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "fitcheck", *args],
            capture_output=True,
            text=True,
            env=environment,
        )
        return done.returncode, done.stdout + done.stderr

    return call


@pytest.mark.parametrize("where", ["checkout", "installed"])
def test_an_editors_trip(
    where: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call: Call = here if where == "checkout" else request.getfixturevalue("installed")

    status, text = call("rules", "eject", "mine", "optimizer")
    assert status == 0 and "fitcheck rules lint mine" in text
    file = Path("mine/formulas/optimizer.yaml")
    bundled = file.read_text(encoding="utf-8")

    # a slip of the finger
    file.write_text(
        bundled.replace("trainable_parameters * b_state\n", "trainable_params * b_state\n")
    )
    status, text = call("rules", "lint", "mine")
    assert status == 1
    assert "mine/formulas/optimizer.yaml:" in text and "F201 unknown-symbol" in text
    assert "Did you mean `trainable_parameters`?" in text
    status, text = call("rules", "explain", "F201")
    assert status == 0 and "Wrong:" in text
    status, text = call(*RUN)
    assert status == 2 and "the rules cannot be used, 1 problem" in text

    # the change that was meant, with the worked example as it was
    changed = bundled.replace("b_master: {value: 4,", "b_master: {value: 6,")
    file.write_text(changed)
    status, text = call("rules", "test", "mine", "--only", "optimizer")
    assert status == 1 and "WRONG" in text and "more)" in text
    place = next(line for line in changed.split("\n") if "lora: false" in line)
    file.write_text(changed.replace(place, place.replace("96_363_134_976", "112_423_657_472")))
    status, text = call("rules", "lint", "mine")
    assert (status, text.split(" in ")[0]) == (0, "No problem")

    # the answer, where it comes from, and what else moved
    status, text = call(*RUN, "--derive", "optimizer")
    assert status in (0, 1)
    assert "mine/formulas/optimizer.yaml:" in text and "6 byte/param" in text
    status, text = call("rules", "why", "optimizer", *RUN)
    assert status == 0 and "holds     state-and-master  [mine/formulas/optimizer.yaml:" in text
    status, text = call("rules", "diff", "mine")
    assert status == 0 and "replaces formulas/optimizer.yaml" in text
    assert "optimizer " in text and "Nothing moves in: golden" in text
