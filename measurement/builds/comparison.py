"""A config as fitcheck counts it beside the class that the installed transformers builds from it.

Needs the packages of the extra `measure`. The model stays on the meta device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fitcheck.engine.api import estimate
from fitcheck.engine.report import Report

from ..built_class import meta_model
from . import parts
from .parts import Linears

COUNTS = {
    "total": "parameters",
    "embedding": "embedding_parameters",
    "head": "head_parameters",
    "experts": "expert_parameters",
    "tower": "tower_parameters",
}
NO_MODULE = ("stacked", "patched")


def estimated(config: Mapping[str, Any], **flags: Any) -> Report:
    """The estimate for the installed libraries; every linear module gets adapters."""
    import peft
    import transformers

    flags = {"lora_targets": "all-linear", "precision": "bf16", **flags}
    stack = {"transformers": transformers.__version__, "peft": peft.__version__}
    return estimate(dict(config), **stack, **flags)


def counted_linears(report: Report) -> Linears:
    """The linear modules of the canonical model, by path below the layer, widths and bias."""
    found: Linears = Counter()
    for group in report.prepared.model.lists["all_groups"]:
        for m in group["modules"]:
            if m["kind"] not in NO_MODULE:
                path = ".".join(w for w in m["path"].split(".") if w != "N" and not w.isdigit())
                found[path, m["d_in"], m["d_out"], bool(m["bias"])] += (
                    group["count"] * m["instances"]
                )
    return Counter({key: number for key, number in found.items() if number})


def below_layers(real: Linears, known: Linears) -> Linears:
    """The real modules, each path cut to the longest end that `known` has with its widths."""
    found: Linears = Counter()
    for (path, d_in, d_out, bias), number in real.items():
        words = path.split(".")
        ends = (".".join(words[i:]) for i in range(len(words)))
        end = next((e for e in ends if (e, d_in, d_out, bias) in known), path)
        found[end, d_in, d_out, bias] += number
    return found


def differences(config: Mapping[str, Any], native: Mapping[str, Any] | None = None) -> list[str]:
    """
    Where the estimate and the class disagree, in words: parameters by part, linear modules, packed
    weights. Empty if they are equal.

    `native` is the config to build the class from where that is another one.
    """
    report = estimated(config)
    model = meta_model(config if native is None else native)
    return [
        *_counts(report, model),
        *_linears(report, model),
        *unequal("packed", report["linear_parameters"], parts.pack(model)),
    ]


def _counts(report: Report, model: Any) -> Iterator[str]:
    for part, number in parts.parts(model).items():
        yield from unequal(part, report[COUNTS[part]], number)


def _linears(report: Report, model: Any) -> Iterator[str]:
    known = counted_linears(report)
    real = below_layers(parts.linears(model), known)
    for word, rest in (("missing", real - known), ("not there", known - real)):
        for (path, d_in, d_out, bias), number in rest.items():
            yield f"{word}: {number} x {path} {d_in} -> {d_out}{' with bias' if bias else ''}"


def unequal(what: str, counted: int, real: int) -> Iterator[str]:
    """One sentence if the numbers differ."""
    if counted != real:
        yield f"{what}: {counted:,} for {real:,} ({counted - real:+,})"
