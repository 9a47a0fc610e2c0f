"""`Did you mean ...?`"""

from __future__ import annotations

from collections.abc import Collection


def suggest(word: str, known: Collection[str]) -> str:
    """` Did you mean ...?` or nothing."""
    import difflib  # only where something is wrong

    near = difflib.get_close_matches(word, sorted(known), 1)
    return f" Did you mean `{near[0]}`?" if near else ""
