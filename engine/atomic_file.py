"""Files that are written in one step, so that there is never half of one."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile


def replace(place: str, made: bytes) -> None:
    """The file at a place, new or instead of an old one; raises OSError and leaves the old one."""
    place = os.path.realpath(place)  # a link stays one
    handle, beside = tempfile.mkstemp(prefix=".fitcheck-", dir=os.path.dirname(place))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(made)
        os.chmod(beside, mode_of(place))
        os.replace(beside, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def mode_of(place: str) -> int:
    """The permissions that a file has, or that a new one gets."""
    try:
        return stat.S_IMODE(os.stat(place).st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
