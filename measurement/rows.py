"""The evidence rows of `measurement/evidence/`, each with the role that the manifest gives it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitcheck.engine.paths import data_folder

TRAINING_FILES = ("t4_training", "t4_notebook_training", "t4_verdicts")


@dataclass(frozen=True, eq=False)
class Row:
    """
    One measured training run.

    `run` holds the flags, `config` the dimensions under their config.json names, `parameters` the
    exact count of the base model, `measured` the readings in MiB. `data` is the row as it lies in
    the file; its keys are described in `measurement/evidence/README.md`.
    """

    id: str
    role: str
    card: str
    model: str
    config: Mapping[str, Any]
    parameters: int
    run: Mapping[str, Any]
    measured: Mapping[str, float]
    data: Mapping[str, Any]

    @property
    def group(self) -> str:
        """Attention kernel and base storage, as in `eager/nf4`, then what is unusual."""
        parts = [f"{'flash' if self.run['flash_attn'] else 'eager'}/{self.run['quant']}"]
        if self.run["double_quant"]:
            parts.append("double quant")
        if not self.run["grad_checkpoint"]:
            parts.append("checkpointing off")
        if self.run["precision"] != "fp16":
            parts.append(str(self.run["precision"]))
        return ", ".join(parts)


def roles() -> dict[str, str]:
    """Row id to role, for all files; raises FitcheckError where the folder is missing."""
    import yaml

    path = os.path.join(data_folder("measurement/evidence"), "manifest.yaml")
    with open(path, encoding="utf-8") as handle:
        return dict(yaml.safe_load(handle)["rows"])


def read_rows(*wanted: str) -> list[Row]:
    """
    The training rows with one of the wanted roles, in the order of the files.

    Parameters
    ----------
    *wanted : str
        Roles of the manifest, such as "calibration"; none means every role.
    """
    folder, role_of = data_folder("measurement/evidence"), roles()
    rows = []
    for name in TRAINING_FILES:
        with open(os.path.join(folder, f"{name}.jsonl"), encoding="utf-8") as handle:
            for line in handle:
                data = json.loads(line)
                if not wanted or role_of[data["id"]] in wanted:
                    rows.append(_row(data, role_of[data["id"]]))
    return rows


def _row(data: Mapping[str, Any], role: str) -> Row:
    model = data["model"]
    return Row(
        data["id"],
        role,
        data["card"]["key"],
        model["hub_id"],
        model["config"],
        model["parameters"],
        data["run"],
        data.get("measured_mib", {}),
        data,
    )
