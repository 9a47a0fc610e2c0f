"""One configuration, from its file to its estimate."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fitcheck.cli.answer import Request, as_json
from fitcheck.engine.api import prepare
from fitcheck.engine.errors import FitcheckError, InputProblem
from fitcheck.engine.importing.applying import Imported
from fitcheck.engine.importing.document import Document, Item, read_document
from fitcheck.engine.importing.mapping import Importer
from fitcheck.engine.importing.reading import Configuration, read_configuration
from fitcheck.engine.record import record
from fitcheck.engine.run_file import HEAD, TRAINING, read_run
from fitcheck.engine.spelling import spelled
from fitcheck.engine.sticky import folded

if TYPE_CHECKING:
    from fitcheck.engine.flags import FlagSet
    from fitcheck.engine.report import Report
    from fitcheck.engine.rules import Rules

COULD_NOT_RUN = 2
SAVED_RUN = "fitcheck"


@record(identity=True)
class Checked:
    """
    A file with what became of it: either `error`, or `report` with the command that gives it.

    `configuration` is None for a saved run of fitcheck and where the file could not be read.
    """

    path: str
    configuration: Configuration | None
    format: str
    request: Request | None
    command: tuple[str, ...]
    report: Report | None
    error: FitcheckError | None
    line: int = 1  # where a reader should look

    @property
    def exit_code(self) -> int:
        """That of the estimate, or 2 where there is none."""
        return COULD_NOT_RUN if self.report is None else self.report.exit_code

    @property
    def imported(self) -> Imported | None:
        return self.configuration.imported if self.configuration else None

    def to_dict(self) -> dict[str, Any]:
        """The form in the JSON contract."""
        said = self.imported
        return {
            "file": self.path,
            "format": self.format or None,
            "error": None if self.error is None else str(self.error),
            "exit_code": self.exit_code,
            "status": self.report.status if self.report is not None else None,
            "command": shlex.join(self.command) if self.command else None,
            "used": [
                {**place(u.item), "flags": {n: plain(v) for n, v in u.flags.items()}}
                for u in (said.used if said else ())
            ],
            "unpriced": [
                {**place(u.item), "direction": u.direction, "says": u.says}
                for u in (said.unpriced if said else ())
            ],
            "unknown": [place(item) for item in (said.unknown if said else ())],
            "free": [place(item) for item in (said.free if said else ())],
            "defaults": {n: plain(v) for n, v in said.defaults.items()} if said else {},
            "assumed": list(said.assumed) if said else [],
            "estimate": None
            if self.report is None or self.request is None
            else as_json(self.report, self.request, {"explain": False, "verbose": False}),
        }


def place(item: Item) -> dict[str, Any]:
    where = {"file": item.path} if item.path else {}
    return {"key": item.key, "line": item.line, "value": plain(item.value), **where}


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def check_file(
    rules: Rules, known: Mapping[str, Importer], path: str, request: Request, values: dict[str, Any]
) -> Checked:
    """One file; nothing is raised but KeyboardInterrupt."""
    try:
        documents = list(documents_of(path, None, known))
    except FitcheckError as error:
        return Checked(path, None, "", None, (), None, error, line_of(str(error), path))
    return check_document(rules, known, documents[0], request, values)


def documents_of(path: str, text: str | None, known: Mapping[str, Importer]) -> Iterator[Document]:
    """What a file, or the text of a command, holds; raises `InputProblem`."""
    from fitcheck.engine.importing.commands import command_document, is_script

    if text is not None:
        yield command_document(path, text, known)
    elif is_script(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            yield command_document(path, file.read(), known)
    else:
        yield read_document(path)


def check_document(
    rules: Rules,
    known: Mapping[str, Importer],
    document: Document,
    request: Request,
    values: dict[str, Any],
) -> Checked:
    """A document put into flags and estimated; nothing is raised but KeyboardInterrupt."""
    path, configuration, form = document.path, None, ""
    try:
        if HEAD in document.items:
            form = SAVED_RUN
            saved = read_run(path)
            flags = saved.flags(TRAINING, rules.flags)
            model, others = (
                saved.top.get("model"),
                {n: saved.top[n] for n in ("gpu", "vram_mib") if n in saved.top},
            )
            told: tuple[str, ...] = ()
        else:
            configuration = read_configuration(
                document, known, rules.flags, values["form"], request.flags
            )
            form, said = configuration.imported.importer.id, configuration.imported
            flags, model, others, told = dict(said.flags), said.model, {}, said.told()
            drop_idle(rules.flags, flags)
        flags = needed(rules.flags, folded(rules.flags, flags, request.flags))
        model = request.model or model
        if model is None:
            raise InputProblem(f"{path}: no key names the model; give --model NAME.")
        report, asked = estimated(rules, model, flags, {**others, **request.others}, told, values)
    except FitcheckError as error:
        hinted = hint(error, configuration, request)
        line = line_of(str(error), path)
        return Checked(path, configuration, form, None, (), None, hinted, line)
    words = ("fitcheck", model, *flag_words(rules.flags, flags), *other_words(asked))
    line = (
        configuration.document.place(configuration.imported.model_key).line if configuration else 1
    )
    return Checked(path, configuration, form, asked, words, report, None, line)


def needed(flags: FlagSet, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The flags without those that say what would hold anyway."""
    shorts = {n: v for n, v in chosen.items() if n in flags.shorthands}
    usual = flags.settled(shorts)[0].values
    return {
        name: value
        for name, value in chosen.items()
        if name in shorts or flags.check(flags.flags[name], value) != usual[name]
    }


def drop_idle(flags: FlagSet, chosen: dict[str, Any]) -> None:
    """
    Leave out what plays no part beside other keys, such as a rank that stands in the file of a full
    fine-tune.
    """
    for _ in range(len(chosen)):
        settings, explicit = flags.settled(chosen)
        conflict = next(flags.conflicting(settings, explicit), None)
        idle = [n for n in conflict.given if n in chosen] if conflict else []
        if not idle:
            return
        for name in idle:
            del chosen[name]


def estimated(
    rules: Rules,
    model: str,
    flags: dict[str, Any],
    others: dict[str, Any],
    told: tuple[str, ...],
    values: dict[str, Any],
) -> tuple[Report, Request]:
    """The estimate, and what was asked for; raises `FitcheckError`."""
    from fitcheck.engine.report import build_report

    if "gpu" in others and values["gpu"] is not None and values["vram_mib"] is None:
        others = {n: v for n, v in others.items() if n != "vram_mib"}
    prepared = prepare(
        rules,
        model,
        gpu=others.get("gpu"),
        vram_mib=others.get("vram_mib"),
        source=values["source"],
        flags=flags,
        told=told,
    )
    return build_report(prepared), Request(model, flags, others, told)


def hint(
    error: FitcheckError, configuration: Configuration | None, request: Request
) -> FitcheckError:
    """The error, with the place of the model's key where the model cannot be read."""
    if configuration is None or request.model or not isinstance(error, InputProblem):
        return error
    said, document = configuration.imported, configuration.document
    for used in said.used:
        if error.flag is not None and error.flag in used.flags:
            return document.refused(used.item.key, f"{used.item.key}: {error}")
    if said.model and said.model in str(error):
        return document.refused(
            said.model_key, f"{said.model_key}: {error} --model NAME takes another one."
        )
    return error


def line_of(text: str, path: str) -> int:
    """The line that a message of this file names."""
    rest = text.partition(f"{os.path.normpath(path)}:")[2] or text.partition(f"{path}:")[2]
    number = rest.partition(":")[0]
    return int(number) if number.isdigit() else 1


def flag_words(flags: FlagSet, chosen: Mapping[str, Any]) -> list[str]:
    """Flags as words, shorthands first."""
    words = [short.option for short in flags.shorthands.values() if chosen.get(short.id)]
    for flag in flags.flags.values():
        if flag.id in chosen:
            words += spelled(flag, flags.check(flag, chosen[flag.id]))
    return words


def other_words(request: Request) -> list[str]:
    from fitcheck.cli.words import other_words as words

    return words(request.others)
