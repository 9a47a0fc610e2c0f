"""The page of a lint code, from `codes.yaml`."""

from __future__ import annotations

from .codes import Page
from .markdown import code, page, plain, table


def code_page(found: Page) -> str:
    """What `fitcheck rules explain CODE` prints, as Markdown."""
    names = [(code(name), plain(says)) for name, says in found.names.items()]
    lines = [
        f"# {found.code}: {plain(found.title)}",
        "",
        f"{prose(found.checks)} ({code(f'fitcheck rules explain {found.code}')} prints this page.)",
        "",
        *table(("as printed", "what is wrong"), names),
        "Wrong:",
        "",
        *fenced(found.wrong),
        "Right:",
        "",
        *fenced(found.right),
        prose(found.mend),
    ]
    return page(lines)


def prose(text: str) -> str:
    """A text that has code in backticks, which stays as it is."""
    parts = " ".join(text.split()).split("`")
    return "".join(f"`{p}`" if i % 2 else plain_edges(p) for i, p in enumerate(parts))


def plain_edges(text: str) -> str:
    """Literal text, with the blanks at its ends."""
    inner = text.strip()
    return text.replace(inner, plain(inner)) if inner else text


def fenced(text: str) -> list[str]:
    return ["```yaml", text, "```", ""]
