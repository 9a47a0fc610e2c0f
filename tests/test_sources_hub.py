"""Models on the Hub, without the Hub: real exceptions of the installed library, and a local server.

The answers are built with the HTTP library that the installed huggingface_hub uses (requests,
httpx or httpx2), so the same tests hold for every supported version.
"""

from __future__ import annotations

import http.server
import importlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants, errors
from huggingface_hub.utils import hf_raise_for_status, logging as library_log  # type: ignore[attr-defined]
from huggingface_hub.utils.tqdm import (
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
)

from fitcheck.engine.errors import InputProblem, Refusal
from fitcheck.engine.sources import Catalogue, RawModel, hub, load_model, waiting

ID = "org/Name-1B"
CONFIG = {"model_type": "llama", "hidden_size": 64}
CATALOGUE_FILE = """\
hub_id: org/Name-2B
parameters: {value: 2, evidence: [built]}
config: {}
"""
NEAREST = "The nearest name in the bundled catalogue is 'org/Name-2B'; it needs no network."
HTTP: ModuleType = importlib.import_module(errors.Response.__module__.split(".")[0])  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No token, not offline, in an empty folder; any call that a test does not replace fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "https://huggingface.co")
    for place in (constants, sys.modules["huggingface_hub.utils.tqdm"]):
        monkeypatch.setattr(place, "HF_HUB_DISABLE_PROGRESS_BARS", None)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    monkeypatch.setattr(hub, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(waiting, "tell", waiting.nobody)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda *_, **__: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda **_: pytest.fail("download"))
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: pytest.fail("info"))


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "org--name-2b.yaml").write_text(CATALOGUE_FILE, encoding="utf-8")
    return Catalogue(str(folder))


def answer(status: int, **headers: str) -> Exception:
    """What the Hub library raises for this answer to a request for config.json."""
    url = f"https://huggingface.co/{ID}/resolve/main/config.json"
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if HTTP.__name__ == "requests":
        response = HTTP.Response()
        response.status_code, response.url = status, url
        response.headers.update(headers)
        response.request = HTTP.Request("HEAD", url).prepare()
    else:
        request = HTTP.Request("HEAD", url)
        response = HTTP.Response(status, headers=headers, request=request)
    try:
        hf_raise_for_status(response)
    except errors.HfHubHTTPError as error:
        return error
    raise AssertionError(f"{status} is no error")


def uncached(cause: Exception | None) -> Exception:
    """The library's way to say that there was no answer and that the cache does not help."""
    error = errors.LocalEntryNotFoundError("cannot find the requested files in the local cache")
    error.__cause__ = cause
    return error


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def download(**_: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)


def message(catalogue: Catalogue, model: str = ID) -> str:
    with pytest.raises(InputProblem) as caught:
        load_model(model, catalogue=catalogue)
    return str(caught.value)


def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, info: object) -> list[str]:
    """Makes both calls succeed; returns the log of what was called."""
    path = tmp_path / "downloaded.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    calls: list[str] = []

    def download(*, repo_id: str, filename: str) -> str:
        assert (repo_id, filename) == (ID, "config.json")
        assert are_progress_bars_disabled("huggingface_hub.http_get")
        calls.append("config")
        return str(path)

    def model_info(_: object, repo_id: str, *, expand: list[str], timeout: float) -> object:
        assert (repo_id, expand) == (ID, ["safetensors"])
        assert 0 < timeout <= 30
        calls.append("info")
        if isinstance(info, BaseException):
            raise info
        return info

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    return calls


def safetensors(total: object) -> SimpleNamespace:
    return SimpleNamespace(safetensors=SimpleNamespace(total=total))


def test_a_model_on_the_hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    calls = serve(monkeypatch, tmp_path, safetensors(1_234_567))
    assert load_model(f" {ID} ", catalogue=catalogue) == RawModel(
        name="Name-1B",
        config=dict(CONFIG),
        reported_params=1_234_567,
        source="Hugging Face Hub (org/Name-1B)",
        source_kind="hub",
    )
    assert calls == ["config", "info"]


@pytest.mark.parametrize(
    "info",
    [
        SimpleNamespace(),
        SimpleNamespace(safetensors=None),
        safetensors(None),
        safetensors(True),
        safetensors(0),
        safetensors(-5),
        safetensors("7"),
        safetensors(7.0),
        RuntimeError("anything"),
        KeyError("anything"),
        HTTP.ReadTimeout("slow"),
        answer(503),
        answer(404, X_Error_Code="RepoNotFound"),
    ],
)
def test_without_a_reported_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue, info: object
) -> None:
    calls = serve(monkeypatch, tmp_path, info)
    model = load_model(ID, catalogue=catalogue)
    assert model.reported_params is None
    assert model.config == CONFIG
    assert calls == ["config", "info"]


def test_a_refusal_costs_no_second_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    calls = serve(monkeypatch, tmp_path, safetensors(7))

    def refuse(config: dict[str, object]) -> None:
        assert config == CONFIG
        raise Refusal("mixture of experts")

    with pytest.raises(Refusal, match="mixture of experts"):
        load_model(ID, catalogue=catalogue, check=refuse)
    assert calls == ["config"]


def test_the_progress_bar_setting_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    serve(monkeypatch, tmp_path, None)
    disable_progress_bars()
    load_model(ID, catalogue=catalogue)
    assert are_progress_bars_disabled("huggingface_hub.http_get")
    enable_progress_bars()
    load_model(ID, catalogue=catalogue)
    assert not are_progress_bars_disabled("huggingface_hub.http_get")
    fail_with(monkeypatch, answer(500))
    message(catalogue)
    assert not are_progress_bars_disabled("huggingface_hub.http_get")


def test_a_progress_bar_setting_in_the_environment_is_respected(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", False)
    shown: list[bool] = []

    def download(**_: object) -> str:
        shown.append(not are_progress_bars_disabled("huggingface_hub.http_get"))
        raise answer(500)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    message(catalogue)
    assert shown == [True]


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("wrap", [lambda error: error, uncached])
def test_gated(
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Catalogue,
    status: int,
    wrap: Callable[[Exception], Exception],
) -> None:
    error = answer(status, X_Error_Code="GatedRepo", X_Error_Message="restricted")
    assert isinstance(error, errors.GatedRepoError)
    fail_with(monkeypatch, wrap(error))
    assert message(catalogue) == (
        "'org/Name-1B' is gated and no access token was found. Accept its licence at "
        "https://huggingface.co/org/Name-1B, then run `hf auth login` or set HF_TOKEN. " + NEAREST
    )
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_token")
    assert message(catalogue) == (
        "'org/Name-1B' is gated and the access token that was found does not open it. Accept its "
        "licence at https://huggingface.co/org/Name-1B with the token's account, or choose another "
        "token with `hf auth login` or HF_TOKEN. " + NEAREST
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (answer(404, X_Error_Code="RepoNotFound"), "404 Client Error."),
        (answer(401), "401 Client Error."),
        (
            answer(401, X_Error_Message="Invalid credentials in Authorization header"),
            "Invalid credentials in Authorization header",
        ),
        (answer(503), "503"),
        (answer(429), "429"),
        (
            answer(403, X_Error_Message="Access to this resource is disabled."),
            "Access to this resource is disabled.",
        ),
    ],
)
@pytest.mark.parametrize("wrap", [lambda error: error, uncached])
def test_the_hub_said_no(
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Catalogue,
    error: Exception,
    words: str,
    wrap: Callable[[Exception], Exception],
) -> None:
    assert isinstance(error, errors.HfHubHTTPError)
    fail_with(monkeypatch, wrap(error))
    heading, *lines = message(catalogue).split("\n")
    assert heading == "Could not read config.json for 'org/Name-1B':"
    assert words in "\n".join(lines)
    assert lines[-1] == "  " + NEAREST
    own = [line.strip() for line in str(error).splitlines() if line.strip()]
    assert [line.strip() for line in lines[:-1]] == own


def test_a_repository_without_a_config(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    error = answer(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found")
    assert isinstance(error, errors.EntryNotFoundError)
    fail_with(monkeypatch, error)
    text = message(catalogue)
    assert "Entry Not Found for url" in text
    assert text.endswith(
        "The repository holds no config.json: if it holds an adapter or GGUF files only, name the "
        "base model."
    )


def test_an_answer_that_is_not_the_hubs(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    fail_with(monkeypatch, uncached(errors.FileMetadataError("not a Hub endpoint")))
    assert message(catalogue).startswith(
        "Could not read config.json for 'org/Name-1B':\n  not a Hub endpoint\n"
    )


@pytest.mark.parametrize("wrap", [lambda error: error, uncached])
@pytest.mark.parametrize("name", ["ReadTimeout", "ConnectTimeout", "ConnectError", "ProxyError"])
def test_no_answer(
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Catalogue,
    wrap: Callable[[Exception], Exception],
    name: str,
) -> None:
    if HTTP.__name__ == "requests":
        kind = getattr(HTTP.exceptions, name.replace("ConnectError", "ConnectionError"))
    else:
        kind = getattr(HTTP, name)
    fail_with(monkeypatch, wrap(kind("no answer")))
    assert message(catalogue) == (
        f"Could not reach the Hugging Face Hub for 'org/Name-1B' ({kind.__name__}). Check the "
        "connection and try again, or set `HF_HUB_OFFLINE=1` to estimate from a config.json "
        "already in the local cache. " + NEAREST
    )


@pytest.mark.parametrize("error", [ConnectionResetError(104, "reset"), TimeoutError(110, "slow")])
def test_a_connection_broken_by_the_system(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, error: OSError
) -> None:
    fail_with(monkeypatch, error)
    assert f"Hub for 'org/Name-1B' ({type(error).__name__})." in message(catalogue)


def test_no_answer_and_no_reason(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue) -> None:
    fail_with(monkeypatch, uncached(None))
    assert "(LocalEntryNotFoundError). Check the connection" in message(catalogue)


@pytest.mark.parametrize("cause", [errors.OfflineModeIsEnabled("offline"), None])
def test_offline_and_nothing_cached(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, cause: Exception | None
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    fail_with(monkeypatch, uncached(cause))
    assert message(catalogue) == (
        "HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set and the local cache holds no config.json "
        "for 'org/Name-1B'. Unset it to fetch the file, or give the path of a config.json. "
        + NEAREST
    )


def test_offline_and_cached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    calls = serve(monkeypatch, tmp_path, safetensors(7))
    model = load_model(ID, catalogue=catalogue)
    assert model.reported_params is None
    assert model.source == "Hugging Face Hub (org/Name-1B) from the local cache, offline"
    assert calls == ["config"]


def test_a_cache_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    fail_with(monkeypatch, PermissionError(13, "Permission denied", "/cache"))
    assert message(catalogue) == (
        "The Hugging Face library could not use its own files for 'org/Name-1B': [Errno 13] "
        "Permission denied: '/cache'."
    )


def test_a_proxy_that_needs_a_package(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    fail_with(monkeypatch, ImportError("Using SOCKS proxy, but 'socksio' is not installed."))
    assert message(catalogue) == (
        "Could not use the Hugging Face Hub for 'org/Name-1B': Using SOCKS proxy, but 'socksio' is "
        "not installed."
    )


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    text = message(catalogue)
    assert text.startswith(
        "Reading 'org/Name-1B' from the Hugging Face Hub needs the huggingface_hub package ("
    )
    assert text.endswith("); a path or a name of the bundled catalogue does not.")


def answers(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> list[float]:
    """What the Hub says to one question after the other; returns the timeouts asked with."""
    left, timeouts = list(outcomes), []

    def ask(url: str, *, timeout: float) -> None:
        assert url == f"https://huggingface.co/{ID}/resolve/main/config.json"
        timeouts.append(timeout)
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", ask)
    return timeouts


@pytest.mark.parametrize("failure", [answer(500), answer(503), HTTP.ReadTimeout("slow")])
def test_a_failure_that_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue, failure: Exception
) -> None:
    serve(monkeypatch, tmp_path, None)
    timeouts = answers(monkeypatch, failure, failure, None)
    assert load_model(ID, catalogue=catalogue).config == CONFIG
    assert len(timeouts) == 3 and set(timeouts) == {8.0}


@pytest.mark.parametrize(
    ("failure", "attempts", "says"),
    [
        (answer(500), 3, "Could not read config.json for 'org/Name-1B':"),
        (answer(404, X_Error_Code="RepoNotFound"), 1, "Repository Not Found"),
        (answer(429), 1, "429"),
        (answer(401, X_Error_Code="GatedRepo"), 1, "is gated"),
        (HTTP.ReadTimeout("slow"), 3, "Could not reach the Hugging Face Hub for 'org/Name-1B' ("),
    ],
)
def test_a_failure_that_stays(
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Catalogue,
    failure: Exception,
    attempts: int,
    says: str,
) -> None:
    timeouts = answers(monkeypatch, *[failure] * 4)
    assert says in message(catalogue)
    assert len(timeouts) == attempts


def test_an_attempt_that_took_long_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    timeouts = answers(monkeypatch, *[HTTP.ReadTimeout("slow")] * 4)
    monkeypatch.setattr(hub, "_PAUSES", (9.0, 9.0))
    assert "Could not reach" in message(catalogue)
    assert len(timeouts) == 1


def test_a_cached_file_is_the_librarys_to_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    serve(monkeypatch, tmp_path, None)
    asked = answers(monkeypatch)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: "a/path")
    assert load_model(ID, catalogue=catalogue).config == CONFIG
    assert asked == []


def test_nobody_waits_longer_than_said(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    ended, told = threading.Event(), []
    monkeypatch.setattr(waiting, "NOTICE_AFTER", 0.01)
    monkeypatch.setattr(waiting, "tell", told.append)
    monkeypatch.setattr(hub, "_patience", lambda: 0.05)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda **_: ended.wait(20))
    assert message(catalogue) == (
        "Could not reach the Hugging Face Hub for 'org/Name-1B' (no answer within 0.05 s). Check "
        "the connection and try again, or set `HF_HUB_OFFLINE=1` to estimate from a config.json "
        "already in the local cache. " + NEAREST
    )
    assert told == ["asking the Hugging Face Hub for 'org/Name-1B', for up to 0.05 s"]
    ended.set()


def test_patience_is_ten_seconds_or_what_the_library_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for told, waited in ((10, 10.0), (3, 10.0), (60, 60.0)):
        monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", told)
        assert hub._patience() == waited


def test_the_library_is_silent_unless_more_was_wanted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    path = tmp_path / "downloaded.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    seen: list[int] = []

    def download(**_: object) -> str:
        seen.append(library_log.get_verbosity())
        return str(path)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: None)
    before = library_log.get_verbosity()
    try:
        for level in (logging.WARNING, logging.ERROR, logging.INFO, logging.DEBUG):
            library_log.set_verbosity(level)
            load_model(ID, catalogue=catalogue)
            assert library_log.get_verbosity() == level
    finally:
        library_log.set_verbosity(before)
    assert seen == [logging.CRITICAL, logging.CRITICAL, logging.INFO, logging.DEBUG]


def test_a_name_of_the_catalogue_that_only_the_hub_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    fail_with(monkeypatch, HTTP.ReadTimeout("slow"))
    with pytest.raises(InputProblem) as caught:
        load_model("ORG/name-2b", source="hub", catalogue=catalogue)
    assert str(caught.value).endswith(
        "The bundled catalogue has this model and needs no network: drop --source hub."
    )


@pytest.mark.parametrize("error", [TypeError("bug"), KeyboardInterrupt()])
def test_other_errors_surface_as_themselves(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, error: BaseException
) -> None:
    fail_with(monkeypatch, error)
    with pytest.raises(type(error)):
        load_model(ID, catalogue=catalogue)


def test_a_broken_config_on_the_hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    path = str(tmp_path / "list.json")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda **_: path)
    assert message(catalogue) == (
        "Could not read config.json for 'org/Name-1B': its root is a list, not a JSON object {...}."
    )


def test_a_name_that_the_library_refuses(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    monkeypatch.undo()  # the real function checks the name before it connects
    assert message(catalogue, "a--b") == (
        "Could not read config.json for 'a--b':\n  Cannot have -- or .. in repo_id: 'a--b'."
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("https://huggingface.co/org/Name-1B", " Did you mean 'org/Name-1B'?"),
        ("https://hf.co/org/Name-1B/blob/main/config.json", " Did you mean 'org/Name-1B'?"),
        ("https://example.com/org/Name-1B", ""),
        ("a/b/c", ""),
        ("my model", ""),
        ("org/", ""),
        ("-x", ""),
        ("modèle", ""),
        ("n" * 97, ""),
    ],
)
def test_what_is_no_name_at_all(catalogue: Catalogue, typed: str, meant: str) -> None:
    assert message(catalogue, typed) == (
        f"'{typed}' is neither an existing path nor a name that the Hugging Face Hub allows "
        f"(org/name, of letters, digits, '.', '_' and '-').{meant}"
    )


def test_a_forced_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: Catalogue
) -> None:
    fail_with(monkeypatch, answer(503))
    folder = tmp_path / ID
    folder.mkdir(parents=True)
    # A folder without a config.json does not stand in the way of a model, but it is mentioned.
    assert message(catalogue).endswith(
        f"{NEAREST} (The folder 'org/Name-1B' here holds no config.json.)"
    )
    (folder / "config.json").write_text("{}", encoding="utf-8")
    assert load_model(ID, catalogue=catalogue).source_kind == "local"
    with pytest.raises(InputProblem, match=r"Could not read config\.json for 'org/Name-1B'"):
        load_model(ID, source="hub", catalogue=catalogue)
    with pytest.raises(InputProblem, match=r"Could not read config\.json for 'org/Name-2B'"):
        load_model("org/Name-2B", source="hub", catalogue=catalogue)
    with pytest.raises(InputProblem, match="'net' is not a source: use auto, local, catalogue or"):
        load_model(ID, source="net", catalogue=catalogue)  # type: ignore[arg-type]


def test_a_damaged_catalogue_does_not_hide_the_failure(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    Path(catalogue.folder, "broken.yaml").write_text("[", encoding="utf-8")
    fail_with(monkeypatch, HTTP.ReadTimeout("slow"))
    assert message(catalogue).endswith("already in the local cache.")


def test_a_long_or_hostile_answer_is_cut(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    error = answer(500)
    error.args = ("\n".join(["\x1b[2Jline " + "x" * 5000] * 100),)
    fail_with(monkeypatch, error)
    text = message(catalogue)
    assert len(text.split("\n")) == 21
    assert "\x1b" not in text and len(text) < 25_000


class _Hub(http.server.BaseHTTPRequestHandler):
    """Answers as the Hub does, as far as the library looks."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        body, status, headers = b"", 404, {"X-Error-Code": "RepoNotFound"}
        if self.path.startswith("/api/models/org/open"):
            info = {"id": "org/open", "safetensors": {"parameters": {"BF16": 99}, "total": 99}}
            body, status, headers = json.dumps(info).encode(), 200, {}
        elif "/org/open/" in self.path:
            headers = {"ETag": '"1"', "X-Repo-Commit": "0" * 40}
            body, status = json.dumps(CONFIG).encode(), 200
        elif "/org/gated/" in self.path:
            status, headers = 401, {"X-Error-Code": "GatedRepo"}
        elif "/org/broken/" in self.path:
            status, headers = 500, {}
        elif "/org/adapter/" in self.path:
            headers = {"X-Error-Code": "EntryNotFound"}
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_with_the_real_library(endpoint: str, tmp_path: Path, catalogue: Catalogue) -> None:
    """Nothing replaced: the library talks to a server on this machine, then to its cache only."""
    code = (
        "import sys\n"
        "from fitcheck.engine.errors import InputProblem\n"
        "from fitcheck.engine.sources import Catalogue, load_model\n"
        "for name in sys.argv[2:]:\n"
        "    try:\n"
        "        model = load_model(name, catalogue=Catalogue(sys.argv[1]))\n"
        "        print(model.reported_params, model.config, model.source)\n"
        "    except InputProblem as problem:\n"
        "        print(str(problem).replace('\\n', ' '))\n"
    )
    unset = ("HF_", "HUGGING", "TRANSFORMERS_")
    environment = {k: v for k, v in os.environ.items() if not k.upper().startswith(unset)}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}

    def run(*names: str, **extra: str) -> list[str]:
        command = [sys.executable, "-c", code, catalogue.folder, *names]
        result = subprocess.run(
            command, env=environment | extra, capture_output=True, text=True, timeout=120
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""  # no progress bar, no word about each attempt
        return result.stdout.splitlines()

    found, gated, adapter, unknown = run("org/open", "org/gated", "org/adapter", "org/none")
    assert found == f"99 {CONFIG} Hugging Face Hub (org/open)"
    assert gated.startswith("'org/gated' is gated and no access token was found.")
    assert adapter.startswith("Could not read config.json for 'org/adapter': ")
    assert "The repository holds no config.json" in adapter
    assert unknown.startswith("Could not read config.json for 'org/none': ")
    assert "Repository Not Found" in unknown

    start = time.monotonic()
    (broken,) = run("org/broken")
    assert broken.startswith("Could not read config.json for 'org/broken': ") and "500" in broken
    (unreachable,) = run("org/none", HF_ENDPOINT="http://127.0.0.1:9")
    assert unreachable.startswith("Could not reach the Hugging Face Hub for 'org/none' (Connect")
    assert time.monotonic() - start < 20  # both; the library's own attempts take 23 s each

    cached, missing = run("org/open", "org/gated", HF_HUB_OFFLINE="1")
    assert cached == f"None {CONFIG} Hugging Face Hub (org/open) from the local cache, offline"
    assert "the local cache holds no config.json for 'org/gated'" in missing


def test_nothing_is_imported_early() -> None:
    code = (
        "import sys, fitcheck.engine.sources, fitcheck.engine.sources.hub;"
        "print('huggingface_hub' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_is_offline_follows_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.is_offline() is False
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub.is_offline() is True
