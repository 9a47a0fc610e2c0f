"""Starting the tools: found on the path, never through a shell, never longer than a time limit."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from ..errors import harmless
from ..record import record

SECONDS = 15.0  # a driver that is not kept loaded takes several
LONGEST = 16 << 20  # characters of an answer that are read
SHOWN = 200  # characters of what a tool complains of that a message repeats
PLACES = ("/usr/lib/wsl/lib",)  # where they are too, though not on the path
HOME = "ROCM_PATH"  # variable with the folder below which AMD's tools are in bin/


@record
class Said:
    """What a program wrote, or in words why it did not."""

    text: str
    problem: str = ""


def find(program: str) -> str | None:
    """
    The absolute path of a program; None where it is not installed.

    One in the current folder does not count, which Windows would look into first: a folder that
    somebody unpacked may hold anything.
    """
    own = [os.path.join(os.environ[HOME], "bin")] if os.environ.get(HOME) else []
    places = os.pathsep.join((*PLACES, *own))
    found = shutil.which(program) or shutil.which(program, path=places)
    if found is None:
        return None
    path = os.path.abspath(found)
    return None if os.path.samefile(os.path.dirname(path), os.curdir) else path


def ask(program: str, arguments: Sequence[str], seconds: float | None = None) -> Said:
    """Run a program and return its standard output; every failure becomes a sentence."""
    path = find(program)
    if path is None:
        return Said("", "is not installed")
    limit = SECONDS if seconds is None else seconds
    try:
        done = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return Said("", f"gave no answer within {limit:g} seconds")
    except OSError as error:
        return Said("", f"could not be started: {error.strerror or error}")
    text = done.stdout[:LONGEST].decode("utf-8", "replace")
    if done.returncode:
        said = " ".join((text.strip() or done.stderr.decode("utf-8", "replace")).split())
        if len(said) > SHOWN:
            said = f"{said[:SHOWN]}..."
        reason = f": {harmless(said)}" if said else ""
        return Said(text, f"ended with status {done.returncode}{reason}")
    return Said(text)
