"""Saved runs: a YAML file with a model, a card and the flags that differ from their defaults.

    fitcheck: 1
    model: meta-llama/Llama-3.1-8B
    gpu: "4090"
    training: {qlora: true, lora_r: 64}
    serving: {engine: vllm, seq_len: 32768}
    sweep: {seq_lens: "1024,2048"}

`training` holds the flags of `fitcheck MODEL`, a section named as a mode those of its command, and
`sweep` the ranges of the advisor. Names are the options without dashes in front, with underscores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from . import atomic_file
from .errors import InputProblem, Problem, RuleFileError
from .record import record
from .suggest import suggest

if TYPE_CHECKING:
    from .flags import Flag, FlagSet
    from .yaml_source import Source

HEAD, VERSION = "fitcheck", 1
TRAINING, SWEEP = "training", "sweep"
TOP = ("model", "gpu", "vram_mib", "stack", "source")  # beside the sections


@record(identity=True)
class RunFile:
    """A saved run; `top` holds the model and what is beside the flags, `sections` the flags."""

    source: Source
    top: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, Any]]

    def flags(self, section: str, flags: FlagSet) -> dict[str, Any]:
        """
        The flags of a section by id; raises `InputProblem` with the place of what is wrong.
        """
        known, found = flags.names(), {}
        for name, value in self.sections.get(section, {}).items():
            path = (section, name)
            if name not in known:
                self.refuse(path, f"there is no flag `{name}`.{suggest(name, known)}", key=True)
            flag = flags.flags.get(known[name])
            try:
                found[known[name]] = given(flag, name, value)
                flags.settled({known[name]: found[known[name]]})
            except InputProblem as problem:
                self.refuse(path, str(problem))
        try:
            flags.resolve(found)
        except InputProblem as problem:
            self.refuse((section,), str(problem), key=True)
        return found

    def refuse(self, path: tuple[str, ...], says: str, key: bool = False) -> NoReturn:
        """Raise `InputProblem` about a place of the file."""
        source = self.source
        mark = source.key_mark(path) if key else source.mark(path)
        raise refused(Problem("run", "file", mark, says, source.text))


def given(flag: Flag | None, name: str, value: Any) -> Any:
    """The value of a file as the engine takes it: lists and shares come in the form of YAML."""
    if flag is None:
        return value  # a shorthand
    if flag.kind == "switch" and flag.inverse and name != flag.id and isinstance(value, bool):
        return not value  # no_lora: true
    if flag.kind in ("text", "version", "choice", "words") and type(value) in (int, Fraction):
        return str(value) if type(value) is int else f"{float(value):g}"
    return value


def refused(problem: Problem) -> InputProblem:
    """The problem in the form of all files: place, lines, caret, message."""
    shown = problem.render().split("\n")
    place = str(problem.mark)
    return InputProblem("\n".join([f"{place}: {shown[-1].strip()}", "", *shown[1:-1]]))


def is_run_file(data: Any) -> bool:
    """Whether parsed YAML is a saved run."""
    return isinstance(data, Mapping) and HEAD in data


def read_run(path: str) -> RunFile:
    """Read a saved run; raises `InputProblem` with file, line and column of what is wrong."""
    from .modes import modes_of
    from .paths import bundled_root
    from .yaml_source import read

    if not os.path.isfile(path):
        what = "this is a folder" if os.path.isdir(path) else "there is no such file"
        raise InputProblem(f"{path}: {what}. `save FILE` in a session writes one.")
    try:
        source = read(path)
    except RuleFileError as error:
        raise refused(error.problems[0]) from None
    data = source.data
    file = RunFile(source, {}, {})
    if not is_run_file(data):
        raise InputProblem(
            f"{path} is no saved run: it has to begin with `{HEAD}: {VERSION}`. For a training "
            "configuration of another program there is `fitcheck check FILE`."
        )
    if data[HEAD] != VERSION:
        file.refuse((HEAD,), f"this fitcheck reads version {VERSION} of saved runs.")
    sections = (TRAINING, *modes_of([(bundled_root(), False)]), SWEEP)
    for key, value in data.items():
        if key in sections:
            if not isinstance(value, Mapping):
                file.refuse((key,), f"`{key}` has to hold flags, such as `lora_r: 64`.")
        elif key not in (HEAD, *TOP):
            says = f"there is no key `{key}`.{suggest(key, (*TOP, *sections))}"
            file.refuse((key,), says, key=True)
    top = {name: data[name] for name in TOP if data.get(name) is not None}
    for name, value in top.items():
        if name == "vram_mib" and (type(value) is not int or value < 1):
            file.refuse((name,), "`vram_mib` has to be a whole number of MiB.")
        if name != "vram_mib":
            if isinstance(value, (bool, list, dict)):
                file.refuse((name,), f"`{name}` has to be a word.")
            top[name] = str(value)
    found = {name: data[name] for name in sections if name in data}
    if SWEEP in found:
        found[SWEEP] = {name: ranges(file, name, value) for name, value in data[SWEEP].items()}
    return RunFile(source, top, found)


def ranges(file: RunFile, name: str, value: Any) -> Any:
    """The values of a swept range as they are typed; raises `InputProblem` for another shape."""
    if isinstance(value, list) and all(isinstance(one, (int, str)) for one in value):
        whole = all(type(one) is int for one in value)
        return ",".join(map(str, value)) if whole else tuple(map(str, value))
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return str(value)
    file.refuse((SWEEP, name), f"`{name}` has to hold values such as 1024,2048.")


def write_run(
    path: str, top: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]], force: bool
) -> None:
    """
    Write a saved run in one step; raises `InputProblem` where a file that is none would be lost.
    """
    import yaml

    if os.path.isdir(path):
        raise InputProblem(f"{path}: this is a folder; give the name of a file.")
    if os.path.exists(path) and not force:
        try:
            read_run(path)
        except InputProblem:
            raise InputProblem(
                f"{path} exists and is no saved run: give another name, or --force."
            ) from None
    data: dict[str, Any] = {HEAD: VERSION, **top}
    data.update({name: dict(values) for name, values in sections.items() if values})
    text = "# A saved run: fitcheck --config FILE, or `load FILE` in a session.\n"
    text += yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=False)
    try:
        atomic_file.replace(path, text.encode())
    except OSError as error:
        raise InputProblem(f"{path}: {error.strerror or error}.") from None


def named(flags: FlagSet, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Flags by id as a file names them: the option without dashes, plain YAML values."""
    found: dict[str, Any] = {}
    for name, value in chosen.items():
        option = flags.spelled(name).lstrip("-").replace("-", "_")
        flag = flags.flags.get(name)
        if flag is not None and flag.kind == "switch":
            found[option] = value is not flag.inverse
        elif flag is not None and flag.kind == "words":
            words = flags.check(flag, value)
            preset = next((n for n, w in flag.presets.items() if w == words), None)
            found[option] = preset or ",".join(words)
        elif isinstance(value, (bool, int)):
            found[option] = value
        else:
            found[option] = str(value) if not isinstance(value, Fraction) else f"{float(value):g}"
    return found
