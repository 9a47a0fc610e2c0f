"""One sentence about each command, for the help of the program and of a session."""

from __future__ import annotations

BRIEF = {  # command to what follows it and what it does
    "advise": ("[OPTIONS]", "sweep ranges: the edge of what fits, ceilings, prices"),
    "check": ("FILE...", "estimate training configurations of other programs"),
    "compare": ("GPU... [OPTIONS]", "the same run on several cards, most headroom first"),
    "optimize": ("[OPTIONS]", "what to run instead, with the command"),
    "models": ("[WORDS]", "list the catalogue, or show what a model resolves to"),
    "rules": ("...", "read, check and change the rule files"),
}
