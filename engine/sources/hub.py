"""A model on the Hugging Face Hub: its config.json and its parameter count, never its weights.

The Hub's own library does the work (tokens, cache, `HF_HUB_OFFLINE`). It is imported inside the
functions, so that a run which needs no Hub neither waits for it nor depends on it. Versions from
0.25 to 2.x differ in their HTTP library (requests, httpx, httpx2) and in their exceptions' bases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import InputProblem
from .config_file import read_config
from .names import printable, quoted
from .waiting import TookTooLong, within

_LONGEST_ANSWER = 20  # lines of the Hub's message that are passed on
_PROGRESS = "huggingface_hub.http_get"
_PAUSES = (0.5, 1.5)  # seconds between attempts, for a failure that may pass


def fetch_config(hub_id: str, alternative: Callable[[], str]) -> dict[str, object]:
    """The parsed config.json of a repository, from the Hub or from its local cache.

    `alternative` is called only on failure; its sentence is added where another name would help.
    Raises InputProblem, in different words for a gated repository, for an answer that says no, for
    no answer, and for offline mode. Exceptions of other kinds are not caught.
    """
    try:
        from huggingface_hub import errors, hf_hub_download
    except ImportError as error:
        raise InputProblem(
            f"Reading {quoted(hub_id)} from the Hugging Face Hub needs the huggingface_hub package "
            f"({error}); a path or a name of the bundled catalogue does not."
        ) from error
    # The Hub library's re-export of its HTTP library's base class; requests' errors are OSErrors.
    transport: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]

    def download() -> str:
        with _quiet():
            if not is_offline():
                _wait_for_answer(hub_id, transport)
            return hf_hub_download(repo_id=hub_id, filename="config.json")

    try:
        path = within(_patience(), download, _notice(hub_id))
    except TookTooLong:
        reason = f"no answer within {_patience():g} s"
        raise _unreachable(hub_id, reason, alternative) from None
    except ImportError as error:  # a proxy setting that asks for a package which is not installed
        raise InputProblem(
            f"Could not use the Hugging Face Hub for {quoted(hub_id)}: {str(error).rstrip('.')}."
        ) from error
    except (transport, OSError) as error:
        raise _explained(hub_id, error, alternative) from error
    except ValueError as error:  # a name that the library refuses, a proxy it can't make sense of
        raise _refused(hub_id, error, alternative) from error
    return read_config(path, f"config.json for {quoted(hub_id)}")


def reported_params(hub_id: str) -> int | None:
    """The exact parameter count in the Hub's safetensors metadata, or None.

    One call, no weights. Whatever goes wrong means that there is no such count, never an error.
    """
    if is_offline():
        return None
    try:
        from huggingface_hub import HfApi

        def ask() -> object:
            with _quiet():
                return HfApi().model_info(hub_id, expand=["safetensors"], timeout=_patience())

        info = within(_patience(), ask, _notice(hub_id))
        total = getattr(getattr(info, "safetensors", None), "total", None)
    except Exception:
        return None
    return total if isinstance(total, int) and not isinstance(total, bool) and total > 0 else None


def is_offline() -> bool:
    """True if the Hub library was told to use nothing but its cache."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _patience() -> float:
    """Seconds for one call with everything in it: ten, or as many as HF_HUB_ETAG_TIMEOUT says."""
    from huggingface_hub import constants

    return max(10.0, float(constants.HF_HUB_ETAG_TIMEOUT))


def _notice(hub_id: str) -> str:
    return f"asking the Hugging Face Hub for {quoted(hub_id)}, for up to {_patience():g} s"


def _wait_for_answer(hub_id: str, transport: type[Exception]) -> None:
    """
    Returns once the Hub answers for a file that is not in the cache; raises what it says.

    The library itself would try for 23 seconds before it admits that nobody answers.
    """
    import time

    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(hub_id, "config.json"), str):
        return  # then it falls back to the cache by itself, without further attempts
    timeout, start = _patience() - 2, time.monotonic()
    for pause in (*_PAUSES, None):
        try:
            get_hf_file_metadata(hf_hub_url(hub_id, "config.json"), timeout=timeout)
            return
        except errors.HfHubHTTPError as error:
            if pause is None or error.response is None or error.response.status_code < 500:
                raise
        except (transport, OSError):
            if pause is None or time.monotonic() - start + pause > timeout / 2:
                raise
        time.sleep(pause)


def _explained(hub_id: str, error: Exception, alternative: Callable[[], str]) -> InputProblem:
    """What a failed download means to the person who asked for the model."""
    from huggingface_hub import errors

    # "Not in the cache either" is how the Hub library ends most failures; the reason is its cause.
    uncached = isinstance(error, errors.LocalEntryNotFoundError)
    reason = error.__cause__ if uncached and error.__cause__ is not None else error

    if isinstance(reason, errors.GatedRepoError):
        return InputProblem(_joined(_gated(hub_id), alternative()))
    if isinstance(reason, errors.OfflineModeIsEnabled) or (uncached and is_offline()):
        sentence = (
            f"HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set and the local cache holds no "
            f"config.json for {quoted(hub_id)}. Unset it to fetch the file, or give the path of a "
            "config.json."
        )
        return InputProblem(_joined(sentence, alternative()))
    # An HfHubHTTPError is a transport error and often an OSError too, so it is asked for first;
    # below 1.0 "not in the cache" is an HfHubHTTPError as well, without any answer behind it.
    answered = isinstance(reason, errors.HfHubHTTPError) and not isinstance(
        reason, errors.LocalEntryNotFoundError
    )
    if answered or isinstance(reason, errors.FileMetadataError):
        return _refused(hub_id, reason, alternative)
    if _is_disk_problem(reason):
        return InputProblem(
            f"The Hugging Face library could not use its own files for {quoted(hub_id)}: "
            f"{str(reason).rstrip('.')}."
        )
    return _unreachable(hub_id, type(reason).__name__, alternative)


def _unreachable(hub_id: str, reason: str, alternative: Callable[[], str]) -> InputProblem:
    sentence = (
        f"Could not reach the Hugging Face Hub for {quoted(hub_id)} ({reason}). "
        "Check the connection and try again, or set `HF_HUB_OFFLINE=1` to estimate from a "
        "config.json already in the local cache."
    )
    return InputProblem(_joined(sentence, alternative()))


def _gated(hub_id: str) -> str:
    from huggingface_hub import constants, get_token

    page = f"{constants.ENDPOINT}/{hub_id}"
    if get_token() is None:
        return (
            f"{quoted(hub_id)} is gated and no access token was found. Accept its licence at "
            f"{page}, then run `hf auth login` or set HF_TOKEN."
        )
    return (
        f"{quoted(hub_id)} is gated and the access token that was found does not open it. Accept "
        f"its licence at {page} with the token's account, or choose another token with "
        "`hf auth login` or HF_TOKEN."
    )


def _refused(hub_id: str, reason: BaseException, alternative: Callable[[], str]) -> InputProblem:
    """The Hub's own message, line by line, under a heading that names the model."""
    from huggingface_hub import errors

    lines = [printable(line.strip(), 1000) for line in str(reason).splitlines() if line.strip()]
    if isinstance(reason, errors.EntryNotFoundError):
        lines.append(
            "The repository holds no config.json: if it holds an adapter or GGUF files only, "
            "name the base model."
        )
    elif help_ := alternative():
        lines.append(help_)
    body = "\n  ".join(lines[:_LONGEST_ANSWER] or [type(reason).__name__])
    return InputProblem(f"Could not read config.json for {quoted(hub_id)}:\n  {body}")


def _is_disk_problem(reason: BaseException) -> bool:
    """True for a full or read-only cache folder: the system names such an error by a number."""
    network = (ConnectionError, TimeoutError)
    return (
        isinstance(reason, OSError) and reason.errno is not None and not isinstance(reason, network)
    )


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the library's warnings about each attempt off stderr; a failure gets one sentence."""
    import logging

    from huggingface_hub.utils.logging import get_verbosity, set_verbosity

    before = get_verbosity()
    set_verbosity(logging.CRITICAL if before >= logging.WARNING else before)  # or more was wanted
    try:
        with _no_progress_bar():
            yield
    finally:
        set_verbosity(before)


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keeps the bar of a 2 kB download off stderr, and leaves the caller's setting as it was."""
    from huggingface_hub import constants
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    forced = constants.HF_HUB_DISABLE_PROGRESS_BARS is not None
    if forced or are_progress_bars_disabled(_PROGRESS):
        yield
        return
    disable_progress_bars(_PROGRESS)
    try:
        yield
    finally:
        enable_progress_bars(_PROGRESS)
