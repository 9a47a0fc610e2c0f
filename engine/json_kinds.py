"""The names of the JSON outputs, by which a job checks which contract it reads.

`docs/json-schema/KIND-VERSION.json` is the schema of each. Within a version keys are only added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

VERSION = 1


def schema_id(kind: str) -> str:
    """`fitcheck-estimate-1`: the value of the key `schema` of an output."""
    return f"fitcheck-{kind}-{VERSION}"


def json_text(kind: str, data: Mapping[str, Any]) -> str:
    """An output as text, its schema first."""
    return json.dumps({"schema": schema_id(kind), **data}, indent=2)
