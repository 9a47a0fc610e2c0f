"""How adapters pick modules: by the end of a path, or by a regular expression over the whole path.

The rules of PEFT (huggingface/peft v0.18.0, src/peft/tuners/tuners_utils.py,
check_target_module_exists): a name picks a module whose path is that name or ends with a dot and
it; one text that is a pattern has to match the whole path.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from .evaluation import EvaluationError

SIGNS = frozenset("\\*+?()[]{}|^$")  # one of them makes a pattern of a name
PREFIX = "model.layers."
TRIED = range(40)  # layers that a pattern is tried on
LONGEST = 300


def is_pattern(word: str) -> bool:
    """Whether a target is a regular expression."""
    return not SIGNS.isdisjoint(word)


def selects(words: Collection[str], path: str) -> bool:
    """Whether one of the targets picks the module with this path below its layer."""
    return any(
        _matches(word, path) if is_pattern(word) else path == word or path.endswith(f".{word}")
        for word in words
    )


@lru_cache(maxsize=4096)
def _matches(pattern: str, path: str) -> bool:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise EvaluationError(f"`{pattern}` is no regular expression ({error})") from None
    found = {bool(compiled.fullmatch(f"{PREFIX}{layer}.{path}")) for layer in TRIED}
    if len(found) > 1:
        raise EvaluationError(f"`{pattern}` picks single layers, which is not modelled")
    return found.pop() or bool(compiled.fullmatch(path))
