"""From what went wrong to one sentence on standard error and an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable

from fitcheck.cli.output import say
from fitcheck.engine.errors import FitcheckError, RuleFileError

PROGRAM = "fitcheck"
COULD_NOT_RUN = 2
INTERRUPTED = 130  # what shells report for a process ended by Ctrl-C


def guarded(action: Callable[[], object]) -> int:
    """The exit status of an action; no exception leaves here."""
    try:
        status = action()
    except KeyboardInterrupt:
        return INTERRUPTED
    except RuleFileError as error:
        count = len(error.problems)
        say("error", f"the rules cannot be used, {count} problem{'s' * (count != 1)}:\n\n{error}")
    except FitcheckError as error:
        say("error", str(error))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        say("error", f"{error.strerror or error}{where}")
    except Exception as error:
        say(
            "error",
            f"internal error ({type(error).__name__}: {str(error)[:200]}). This is a bug in "
            "fitcheck: please report it with the command; FITCHECK_DEBUG=1 prints the traceback.",
        )
        if os.environ.get("FITCHECK_DEBUG") == "1":
            import traceback

            traceback.print_exc()
    else:
        return status if isinstance(status, int) else 0
    return COULD_NOT_RUN
