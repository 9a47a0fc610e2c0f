"""The published JSON of an estimate, assembled from the `json:` keys of the formula files."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .json_kinds import schema_id
from .template import MIB
from .versions import Version

if TYPE_CHECKING:
    from .report import Prepared, Report


CARD = "gpu"  # key of the block with the card


def version() -> str:
    """The installed fitcheck version."""
    try:
        from fitcheck import __version__
    except ImportError:  # the engine used without the package around it
        return "unknown"
    return __version__


def to_dict(report: Report) -> dict[str, Any]:
    """
    The JSON contract: keys are added in later versions, never renamed or removed.

    Every `*_mib` value is rounded to two decimals; `*_bytes` values are exact.
    """
    prepared, rules = report.prepared, report.prepared.rules
    result: dict[str, Any] = {
        "schema": schema_id(rules.mode.command if rules.mode is not None else "estimate"),
        "fitcheck_version": version(),
        "model": model_block(prepared),
        CARD: card_block(prepared),
        block_name(prepared): flags_block(prepared),
        "stack": {n: str(v) for n, v in rules.flags.versions(prepared.settings).items()},
    }
    for formula in sorted(rules.formulas.values(), key=lambda f: (f.order, f.id)):
        for key, unit in formula.json.items():
            if formula.per is not None:
                value: Any = {
                    str(item["id"]): converted(report.run.value_at(formula.id, item), unit)
                    for item in report.run.items(formula.per)
                }
            else:
                value = converted(report.run.value(formula.id), unit)
            put(result, key, value)
    from .mode_tables import tables

    result.update({table.id: table.to_list() for table in tables(report)})
    result.setdefault("verdict", {}).update(
        safe_fits=report.safe, status=report.status, reasons=list(report.reasons)
    )
    from .hints import price_hints, proposals

    result["savings_hints"] = [h.short for h in price_hints(prepared)]
    result["proposals"] = [] if report.safe else [p.to_dict() for p in proposals(prepared)]
    result["warnings"] = list(report.warnings)
    result["notes"] = [
        *report.remarks,
        *(c.says for c in report.caveats if c.level == "note"),
    ]
    result["evidence"] = {c.id: c.grade.to_dict() for c in report.components}
    result["evidence"]["gpu"] = card_grade(report)
    result["overlays"] = list(report.overlays)
    result["unsettled"] = list(report.unsettled)
    return result


def run_blocks(prepared: Prepared, kind: str, also: str = "") -> dict[str, Any]:
    """
    What answers about several cards or settings begin with: version, model, flags, libraries.

    Quantities are put in under `model`, and under the block `also`.
    """
    rules = prepared.rules
    result: dict[str, Any] = {
        "schema": schema_id(kind),
        "fitcheck_version": version(),
        "model": model_block(prepared),
        block_name(prepared): flags_block(prepared),
        "stack": {n: str(v) for n, v in rules.flags.versions(prepared.settings).items()},
    }
    if also == CARD:
        result[CARD] = card_block(prepared)
    run = prepared.run_with(())
    for formula in rules.formulas.values():
        for key, unit in formula.json.items():
            if formula.per is None and key.partition(".")[0] in ("model", also):
                put(result, key, converted(run.value(formula.id), unit))
    return result


def card_grade(report: Report) -> dict[str, Any]:
    """What the figures of the card rest on."""
    from .grades import grade_of, weakest

    proofs = [grade_of(e, report.run) for es in report.prepared.card.evidence.values() for e in es]
    return weakest(proofs).to_dict() if proofs else {"grade": "assumed", "rows": 0, "cards": []}


def card_block(prepared: Prepared) -> dict[str, Any]:
    """The card, with what this machine says of it where it is one of it."""
    card = prepared.card
    return {
        "name": card.title,
        "vram_mib": whole_mib(card.total),
        "usable_mib": None,
        "key": card.id,
        **card.here,
    }


def model_block(prepared: Prepared) -> dict[str, Any]:
    model = prepared.model
    return {
        "name": model.name,
        "num_params": None,
        **{name: _json(value) for name, value in model.fields.items()},
        "model_type": model.model_type,
        "architecture": model.architecture,
        "source": model.source,
    }


def _json(value: Any) -> Any:
    """A field of a model as JSON has it."""
    if isinstance(value, Fraction):
        return float(value)
    return list(value) if isinstance(value, tuple) else value


def block_name(prepared: Prepared) -> str:
    """The key that holds the flags."""
    mode = prepared.rules.mode
    return mode.block if mode is not None else "training"


def flags_block(prepared: Prepared) -> dict[str, Any]:
    """The resolved flags under their JSON names."""
    flags, values = prepared.rules.flags, prepared.settings.values
    origin = prepared.settings.origin
    block: dict[str, Any] = {}
    for flag in flags.flags.values():
        if flag.json is None:
            continue
        value = values[flag.id]
        if flag.null_without and not values[flag.null_without]:
            value = None
        block[flag.json] = plain(value)
        if flag.follows and origin[flag.id] == prepared.model.origin.get(flag.follows):
            block[f"{flag.json}_from"] = origin[flag.id]
    return block


def plain(value: Any) -> Any:
    """A flag's value as JSON has it: lists of words as lists, versions as text."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Fraction):
        return float(value)
    return str(value) if isinstance(value, Version) else value


def put(target: dict[str, Any], key: str, value: Any) -> None:
    """`verdict.fits` into nested objects."""
    *path, last = key.split(".")
    for part in path:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise KeyError(key)
    target[last] = value


def converted(value: Any, unit: str) -> Any:
    """An exact value as the JSON shows it."""
    if unit == "MiB":
        return round(float(Fraction(value) / MIB), 2)
    if unit == "MiB to 6 decimals":
        return round(float(Fraction(value) / MIB), 6)
    if unit == "whole MiB":
        return whole_mib(int(value))
    if unit == "percent":
        return round(float(value) * 100, 2)
    if isinstance(value, Fraction):
        return float(value)
    return value


def whole_mib(value: int) -> int | float:
    """MiB as an integer where it is whole."""
    return value // MIB if value % MIB == 0 else round(value / MIB, 2)


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as dotted keys."""
    result: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[f"{prefix}{key}"] = value
    return result
