"""Annotations, job summary and outputs of the action, from the JSON of `fitcheck check`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fitcheck.cli.annotations import annotation

ORDER = ("safe", "uncertain", "does_not_fit", "error")
FAILS = {"uncertain": ORDER[1:], "does_not_fit": ORDER[2:]}


def status_of(file: dict[str, Any]) -> str:
    """The status of one file; `error` where there is no estimate."""
    return str(file["status"] or "error")


def line_of(file: dict[str, Any]) -> int:
    """The line to mark: that of an error, else that of the micro-batch or the first used key."""
    error = str(file["error"] or "")
    number = error.removeprefix(f"{file['file']}:").partition(":")[0]
    if error and number.isdigit():
        return int(number)
    used = [u for u in file["used"] if "file" not in u]
    named = [u["line"] for u in used if "batch_size" in u["flags"]] or [u["line"] for u in used]
    return int(named[0]) if named else 1


def reason_of(file: dict[str, Any]) -> str:
    """Why, in one sentence, with what would help."""
    if file["estimate"] is None:
        return str(file["error"]).split("\n")[0]
    estimate = file["estimate"]
    verdict, card = estimate["verdict"], estimate["gpu"]["name"]
    total, room = estimate["memory_mib"]["total"], verdict["gpu_capacity_mib"]
    text = f"{total:,.0f} MiB of {room:,.0f} MiB on {card}: {'; '.join(verdict['reasons'])}"
    for proposal in estimate["proposals"][:1]:
        changes = ", ".join(f"{name}={value}" for name, value in proposal["changes"].items())
        text += f". {changes} would need {proposal['total_mib']:,.0f} MiB"
    return text


def no_worse(status: str, before: str | None) -> bool:
    """Whether it was as bad before; a file that could not be read says nothing of its memory."""
    if before is None or (before == "error") != (status == "error"):
        return False
    return ORDER.index(before) >= ORDER.index(status)


def main(answer: str, fail_on: str, before: str = "") -> int:
    """Print annotations, write summary and outputs; the exit status of the job."""
    if fail_on not in FAILS:
        print(f"::error title=fitcheck::fail-on is uncertain or does_not_fit, not {fail_on}.")
        return 2
    try:
        files = json.loads(Path(answer).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError):
        print("::error title=fitcheck::fitcheck check gave no answer; its words are above.")
        return 2
    known: dict[str, str] = {}
    if before and Path(before).is_file() and Path(before).stat().st_size:
        old = json.loads(Path(before).read_text(encoding="utf-8"))["files"]
        known = {file["file"]: status_of(file) for file in old}
    rows, failed = [], False
    for file in files:
        status, reason = status_of(file), reason_of(file)
        bad = status in FAILS[fail_on]
        as_before = bad and no_worse(status, known.get(file["file"]))
        failed |= bad and not as_before
        level = "notice" if status == "safe" else "error" if bad and not as_before else "warning"
        told = f"{reason}. It was so before this change." if as_before else reason
        title = f"fitcheck: {status.replace('_', ' ')}"
        print(annotation(level, file["file"], line_of(file), title, told))
        rows.append(f"| `{file['file']}` | {status.replace('_', ' ')} | {cell(told)} |")
    worst = max((status_of(file) for file in files), key=ORDER.index, default="safe")
    append("GITHUB_OUTPUT", f"status={worst}\njson={answer}\n")
    table = "\n".join(["| file | verdict | why |", "|:---|:---|:---|", *rows])
    append("GITHUB_STEP_SUMMARY", f"### Does it fit?\n\n{table}\n")
    return 1 if failed else 0


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def append(variable: str, text: str) -> None:
    """Add to a file that the runner reads, where there is one."""
    path = os.environ.get(variable)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
