"""Where a wheel keeps what an architecture file says."""

from __future__ import annotations


def module_of(architecture: str) -> str:
    """The generated module of an architecture."""
    return f"_compiled_architecture_{architecture.replace('-', '_')}"
