"""The walk from flags to verdict, as one call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .errors import InputProblem, RuleFileError
from .paths import bundled_root
from .record import replace

if TYPE_CHECKING:  # imported where they are used: --help needs none of them
    from .advice import Advice
    from .architecture import Model
    from .cards import Card
    from .report import Prepared, Report
    from .rules import Rules
    from .sources import Source
    from .yaml_source import Source as FileSource

SOURCES: tuple[Source, ...] = ("auto", "local", "catalogue", "hub")

__all__ = ["advise", "estimate", "prepare", "rules_for"]


@lru_cache(maxsize=8)
def _bundled(mode: str | None = None) -> Rules:
    from importlib import import_module

    name = f"_compiled_mode_{mode}" if mode else "_compiled"  # codegen.of_mode
    try:
        compiled = import_module(f".{name}", __package__)  # only in a wheel
    except ImportError:
        from .loading import load_rules

        return load_rules(mode=mode)
    found: Rules = compiled.rules(bundled_root())
    return found


def rules_for(folders: Sequence[str] = (), mode: str | None = None) -> Rules:
    """
    The rules, of training or of a mode, with overlay folders on top.

    The bundled ones are read once per process and only checked in full where they cannot be read;
    overlays are always checked. Raises `RuleFileError` with every problem.
    """
    if folders:
        from .checks import checked_rules
        from .loading import roots_of

        return checked_rules(roots_of(folders), mode)
    try:
        return _bundled(mode)
    except RuleFileError:
        from .checks import check_roots

        raise RuleFileError(check_roots()) from None


def estimate(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    gpu: str | None = None,
    vram_mib: int | None = None,
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = (),
    source: Source = "auto",
    parameters: int | None = None,
    mode: str | None = None,
    **flags: Any,
) -> Report:
    """
    Estimate the peak memory of a fine-tuning run on one GPU, or that of another mode.

    Parameters
    ----------
    model : str, path or mapping
        Hub id, path of a `config.json` or its folder, name of the bundled catalogue, or the parsed
        config itself.
    gpu : str, optional
        Key or alias of a card (default: the one of `formulas/flags.yaml`), or "auto" for that of
        this machine.
    vram_mib : int, optional
        Memory of a card that has no file. [MiB]
    rules : str or sequence of str, optional
        Folders with changed or added rule files.
    source : {"auto", "local", "catalogue", "hub"}
        Where to look for the model.
    parameters : int, optional
        Exact parameter count of the model, where you know it better than the source does.
    mode : str, optional
        A folder below `formulas/`, such as "serving"; without one it is training.
    **flags
        The switches of the command line by name: `quant`, `qlora`, `lora_r`, `batch_size`, ...;
        those of `fitcheck infer` in serving.

    Returns
    -------
    Report
        Frozen; bytes are exact.

    Raises
    ------
    InputProblem
        A flag, the card or the model cannot be used as given.
    Refusal
        The model or the combination is not modelled.
    RuleFileError
        A rule file is wrong.

    Examples
    --------
    >>> report = estimate("meta-llama/Llama-3.1-8B", gpu="4090", qlora=True, lora_r=64)
    >>> report.status, report["total"]          # doctest: +SKIP
    ('safe', 15473066803)
    """
    if isinstance(rules, (str, os.PathLike)):
        rules = (rules,)
    folders = tuple(os.fspath(folder) for folder in rules or ())
    loaded = rules_for(folders, mode)
    from .report import build_report

    return build_report(
        prepare(
            loaded,
            model,
            gpu=gpu,
            vram_mib=vram_mib,
            source=source,
            flags=flags,
            parameters=parameters,
        )
    )


def advise(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    gpu: str | None = None,
    vram_mib: int | None = None,
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = (),
    source: Source = "auto",
    sweep: Mapping[str, Any] | None = None,
    **flags: Any,
) -> Advice:
    """
    Sweep a grid of configurations: the edge of what fits, where each axis ends, what a step costs.

    Parameters
    ----------
    model, gpu, vram_mib, rules, source
        As for `estimate`.
    sweep : mapping, optional
        Further flags, or `gpu`, to their values: `{"optimizer": ["adamw", "adam8bit"]}`.
    **flags
        The axes of `formulas/advise.yaml` by the name of their list (`seq_lens=[1024, 2048]`, or a
        text such as `"512..8192:512"`), bounds such as `max_seq_len`, and flags as for `estimate`,
        which are held fixed.

    Returns
    -------
    Advice
        Frozen; bytes are exact. `to_dict()` is the JSON of `fitcheck advise --json`.

    Raises
    ------
    InputProblem
        A value, the card or the model cannot be used, or the sweep is too large.
    Refusal
        Nothing of what is swept is modelled.
    RuleFileError
        A rule file is wrong.

    Examples
    --------
    >>> advice = advise("meta-llama/Llama-3.1-8B", gpu="4090", qlora=True, seq_lens=[1024, 2048])
    >>> advice.recommended.values, advice.exit_code          # doctest: +SKIP
    ({'batch_size': 4, 'seq_len': 1024, 'lora_r': 256}, 0)
    """
    from .advisor import advise as swept

    if isinstance(rules, (str, os.PathLike)):
        rules = (rules,)
    folders = tuple(os.fspath(folder) for folder in rules or ())
    return swept(
        rules_for(folders),
        model,
        flags,
        sweep or {},
        gpu=gpu,
        vram_mib=vram_mib,
        source=source,
        folders=folders,
    )


def prepare(
    rules: Rules,
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    gpu: str | None,
    vram_mib: int | None,
    source: Source,
    flags: Mapping[str, Any],
    parameters: int | None = None,
    told: Sequence[str] = (),
    checkpoint: FileSource | None = None,
) -> Prepared:
    """
    Flags, card and model resolved, nothing computed yet.

    `checkpoint` says what else is read of the model, in place of the checkpoint file of the rules.
    """
    from .profile_defaults import filled
    from .report import Prepared

    card = choose_card(rules, gpu, vram_mib)
    settings = filled(rules, rules.flags.resolve(flags), card.facts())
    stack = rules.flags.versions(settings)
    canonical = read_model(rules, model, source, parameters, stack, checkpoint)
    settings = rules.flags.following(settings, canonical.stored, canonical.origin)
    found = Prepared(rules, settings, card, canonical, tuple(told))
    beside = rules.mode.beside if rules.mode is not None else None
    name = settings.values[beside.flag] if beside is not None else ""
    if beside is None or not name:
        return found
    from .beside import facts_beside

    rest = {n: v for n, v in flags.items() if rules.flags.names().get(n) != beside.flag}
    other = prepare(rules, name, gpu=gpu, vram_mib=vram_mib, source=source, flags=rest)
    warned = tuple(f"{other.model.name}: {text}" for text in other.model.warnings)
    joined = replace(canonical, stored={**canonical.stored, **facts_beside(other, beside)})
    return replace(found, model=joined, told=(*told, *warned))


def choose_card(rules: Rules, gpu: str | None, vram_mib: int | None) -> Card:
    """The named card, with another memory if `vram_mib` is given; that alone is a custom card."""
    from .cards import compiled_card, custom_card, find_card, with_memory

    if gpu is None and vram_mib is not None:
        return custom_card(vram_mib)
    if gpu is not None and not isinstance(gpu, str):
        raise InputProblem(
            f"gpu has to be a name such as {rules.flags.default_card!r}, not {gpu!r}.", flag="gpu"
        )
    name = rules.flags.default_card if gpu is None else gpu
    if name[:4].casefold() == "auto":
        from .machine import card_here, is_here

        if is_here(name):  # never kept: what is free changes
            if vram_mib is not None:
                raise InputProblem(
                    f"--gpu {name} reads the memory of this machine: leave out --vram-mib, or name "
                    "the card.",
                    flag="vram_mib",
                )
            return card_here(rules, name)
    card = rules.found_cards.get(name) or (None if rules.overlays else compiled_card(name))
    if card is None:
        card = find_card(name, rules.folders("gpus"), rules.units)
    rules.found_cards[name] = card
    return card if vram_mib is None else with_memory(card, vram_mib)


def read_model(
    rules: Rules,
    model: str | os.PathLike[str] | Mapping[str, Any],
    source: Source,
    parameters: int | None = None,
    stack: Mapping[str, Any] | None = None,
    checkpoint: FileSource | None = None,
) -> Model:
    """
    The canonical model behind what a person typed.

    `parameters` replaces the source's count; `stack` are library versions, those of the flags'
    defaults where it is not given; `checkpoint` stands in for the checkpoint file of the rules.
    """
    from .architecture import refuse_unsupported, resolve
    from .sources import RawModel, load_model
    from .sources.names import printable

    if parameters is not None and (type(parameters) is not int or not 0 < parameters < 10**18):
        raise InputProblem(f"parameters has to be a positive whole number, not {parameters!r}.")
    if isinstance(model, Mapping):
        name = printable(str(model.get("_name_or_path") or "config"), 100)
        raw = RawModel(name, dict(model), None, "a config given as a mapping", "local")
    elif not isinstance(model, (str, os.PathLike)):
        raise InputProblem(f"model has to be a name, a path or a config, not {model!r}.")
    else:
        typed = printable(os.fspath(model), 100).rstrip("/").split("/")[-1]

        def check(config: dict[str, object]) -> None:
            refuse_unsupported(rules.architectures, typed, config)

        if source not in SOURCES:
            raise InputProblem(f"source {source!r} is not one of {', '.join(SOURCES)}.")
        raw = load_model(model, source=source, check=check)
    count = raw.reported_params if parameters is None else parameters
    versions = rules.stack if stack is None else stack
    checkpoint = checkpoint or rules.checkpoint
    answered = () if checkpoint is None else checkpoint.data.get("present", ())
    found = resolve(
        rules.architectures, raw.name, raw.config, raw.source, count, raw.place, versions, answered
    )
    if checkpoint is not None:
        from .checkpoint import stored_facts

        facts, origins, remarks = stored_facts(checkpoint, raw, versions)
        found = replace(
            found,
            stored=facts,
            origin={**found.origin, **origins},
            remarks=(*found.remarks, *remarks),
        )
    return replace(found, warnings=(raw.remark, *found.warnings)) if raw.remark else found
