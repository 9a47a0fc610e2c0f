"""How a flag is written on a command line."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .flags import Flag


def opposite(option: str) -> str:
    """The option that undoes a switch: `--no-lora` for `--lora` and the other way round."""
    name = option.removeprefix("--")
    return f"--{name.removeprefix('no-')}" if name.startswith("no-") else f"--no-{name}"


def spelled(flag: Flag, value: Any) -> tuple[str, ...]:
    """The words that set a flag on the command line: `("--batch-size", "2")`."""
    if flag.kind == "switch":
        return (flag.option if value is not flag.inverse else opposite(flag.option),)
    if isinstance(value, Fraction):
        value = f"{float(value):g}"
    if isinstance(value, tuple):
        preset = next((name for name, words in flag.presets.items() if words == value), None)
        value = preset or ",".join(value)
    return (flag.option, str(value))
