"""One card of this machine, or a slice of one, as a tool reported it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..record import record
from ..template import MIB

NO_DISPLAY, DISPLAY, WDDM = "none", "display", "wddm"  # values of `card.display`


@record
class Process:
    """A process on a card; `used` is None where the driver does not say. [byte]"""

    pid: int
    name: str
    used: int | None
    instance: str = ""  # the slice of a card that it runs in

    def to_dict(self) -> dict[str, Any]:
        """The form in the JSON contract."""
        used = None if self.used is None else round(self.used / MIB, 2)
        return {"pid": self.pid, "name": self.name, "used_mib": used}


@record
class Device:
    """
    A card or a slice; sizes in bytes, None where the tool gave none.

    `index` is the number that the tool gives, `GPU:SLICE` for a slice. `problem` says why nothing
    can run on it, `display` which allowance its memory needs.
    """

    tool: str
    vendor: str
    index: str
    name: str
    uuid: str
    total: int | None
    free: int | None
    processes: tuple[Process, ...] = ()
    display: str = NO_DISPLAY
    slice: str = ""  # its profile, such as 3g.20gb
    problem: str = ""

    @property
    def usable(self) -> bool:
        """Whether enough is known for an estimate."""
        return not self.problem and bool(self.total) and self.free is not None

    @property
    def title(self) -> str:
        """Its name with what is special about it."""
        return f"{self.name}, MIG {self.slice}" if self.slice else self.name


@record
class Answer:
    """What a tool said: its devices, or in words why there are none."""

    tool: str
    devices: tuple[Device, ...]
    problem: str = ""


def taken(processes: Sequence[Process]) -> str:
    """The processes in words, the largest first: `2 processes (python 4,100 MiB, Xorg 300 MiB)`."""
    ordered = sorted(processes, key=lambda p: -(p.used or 0))
    shown = [p.name if p.used is None else f"{p.name} {p.used // MIB:,} MiB" for p in ordered[:3]]
    more = ", ..." if len(ordered) > len(shown) else ""
    count = len(ordered)
    return f"{count} process{'es' * (count != 1)} ({', '.join(shown)}{more})" if count else ""
