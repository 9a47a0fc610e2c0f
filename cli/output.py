"""Writing to the two streams: nothing here may end in a traceback, whatever is at the other end."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

COLOURS = {"error": "\x1b[31m", "warning": "\x1b[33m", "note": "\x1b[36m"}

# What a stream that cannot carry a sign gets instead; each stands for one character, so columns
# stay where they are.
PLAIN = str.maketrans(
    "█▉▊▋▌▍▎▏▓░┃━─│●◆·▲—–−×≥…→",
    "####---->.|--|*^.^---x>~>",
)


def wants_colour(stream: TextIO | None, refused: bool = False) -> bool:
    """Whether a stream is a terminal that may be coloured (--no-color, NO_COLOR, TERM=dumb)."""
    if refused or os.environ.get("NO_COLOR") or stream is None:
        return False
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def fitted(text: str, stream: TextIO) -> str:
    """The text in characters that the stream's encoding has."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(PLAIN)
        return text.encode(encoding, "replace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "replace").decode("ascii")
    return text


def harmless(text: str) -> str:
    """A text from outside without control characters, which could steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def write(text: str) -> None:
    """Standard output; a reader that has gone away (`| head`) is no failure."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(fitted(text if text.endswith("\n") else f"{text}\n", sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more on its way out, which must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(kind: str, text: str, refused_colour: bool = False) -> None:
    """One line on standard error that opens with what it is: error, warning or note."""
    head = f"{kind}:"
    if wants_colour(sys.stderr, refused_colour):
        head = f"{COLOURS[kind]}{head}\x1b[0m"
    write_error(f"{head} {harmless(text)}")


def write_error(text: str) -> None:
    """Standard error as it is; where it is closed nobody is left to be told."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(fitted(f"{text}\n", sys.stderr))
            sys.stderr.flush()
