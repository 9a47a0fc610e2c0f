"""The prompt of a terminal. The only module that imports prompt_toolkit."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from fitcheck.cli.session import completing
from fitcheck.cli.session.state import TRAINING, State

NO_HISTORY = "FITCHECK_NO_HISTORY"  # set: lines are not kept after the session


class Kept(FileHistory):
    """Lines in a file; where it cannot be written they are kept for this session only."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []


def history() -> History:
    """The lines of earlier sessions, in the user's folder for state."""
    if os.environ.get(NO_HISTORY):
        return InMemoryHistory()
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = os.path.join(home, "fitcheck")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return Kept(os.path.join(folder, "history"))


class Words(Completer):
    """What may follow, from the options of the very commands."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        last = "" if not text or text[-1].isspace() else text.split()[-1]
        before = text[: len(text) - len(last)].split()
        found = completing.words(self.state, before, last)
        if found is None:
            yield from self.paths.get_completions(Document(last), event)
            return
        for word, about in found:
            yield Completion(word, start_position=-len(last), display_meta=about)


def toolbar(state: State) -> str:
    """What the next line starts from."""
    parts = [state.model or "no model", state.gpu or "no gpu"]
    differs = shlex.join(state.differs(TRAINING))
    return " · ".join([*parts, f"differs: {differs}" if differs else "flags as by default"])


def prompted(state: State) -> Iterator[str]:
    """Line after line; Ctrl-C clears one, Ctrl-D ends."""
    session: PromptSession[str] = PromptSession(
        history=history(),
        completer=Words(state),
        complete_while_typing=False,
        enable_suspend=True,
        bottom_toolbar=lambda: toolbar(state),
    )
    while True:
        try:
            yield session.prompt("fitcheck> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
