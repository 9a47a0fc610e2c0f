"""A call that may take long: a limit on it, and a word to the person who waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

NOTICE_AFTER = 3.0  # seconds without an answer until something is said


class TookTooLong(Exception):
    """The limit has passed without an outcome."""


def nobody(text: str) -> None:
    """Where a library is used, nobody is told; the command line puts its own function here."""


tell: Callable[[str], None] = nobody


def within(seconds: float, action: Callable[[], T], notice: str) -> T:
    """
    The result of an action, or its exception; after a few seconds `notice` is told.

    Raises TookTooLong once the limit has passed. The action then goes on in a thread of its own
    that does not keep the program from ending: a name that no server resolves cannot be cut short.
    """
    import threading

    results: list[T] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            results.append(action())
        except BaseException as error:  # handed over, whatever it is
            failures.append(error)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    first = min(NOTICE_AFTER, seconds)
    if not done.wait(first):
        tell(notice)
        if not done.wait(seconds - first):
            raise TookTooLong
    if failures:
        raise failures[0]
    return results[0]
