"""The glossary: every symbol, quantity and flag with its unit, meaning and place."""

from __future__ import annotations

from .rules import Rules


def glossary(rules: Rules) -> str:
    """The glossary as a Markdown page."""
    lines = [
        "# Glossary",
        "",
        "Generated from the rule files by `python docs/generate.py`.",
        "",
        "## Symbols",
        "",
        "| symbol | unit | meaning | from | used in |",
        "|:---|:---|:---|:---|:---|",
    ]
    used: dict[str, list[str]] = {}
    symbols = {}
    for formula in rules.formulas.values():
        for name, symbol in formula.symbols.items():
            used.setdefault(name, []).append(formula.id)
            symbols[name] = symbol
    for name in sorted(symbols, key=lambda n: (n.casefold(), n)):
        symbol = symbols[name]
        unit = symbol.unit.text if symbol.unit else " / ".join(_word(v) for v in symbol.oneof)
        lines.append(
            f"| `{name}` | {unit} | {symbol.meaning} | `{symbol.source}` | "
            f"{', '.join(sorted(used[name]))} |"
        )
    lines += [
        "",
        "## Quantities",
        "",
        "| id | unit | title | what it counts | live in |",
        "|:---|:---|:---|:---|:---|",
    ]
    for formula in sorted(rules.formulas.values(), key=lambda f: (f.id.casefold(), f.id)):
        counts = " ".join(formula.counts.split())
        per = f", one for each of {formula.per}" if formula.per else ""
        lines.append(
            f"| [`{formula.id}`](../{formula.source.path}) | {formula.unit.text}{per} | "
            f"{formula.title} | {counts} | {', '.join(formula.live)} |"
        )
    lines += ["", "## Flags", "", "| flag | values | default | meaning |", "|:---|:---|:---|:---|"]
    for flag in rules.flags.flags.values():
        values = ", ".join(flag.values) or flag.kind
        default = ",".join(flag.default) if isinstance(flag.default, tuple) else _word(flag.default)
        lines.append(f"| `{flag.option}` | {values} | {default} | {flag.help} |")
    lines += ["", "## Phases", "", "| phase | what happens |", "|:---|:---|"]
    lines += [f"| {name} | {says} |" for name, says in rules.phases.items()]
    return "\n".join(lines) + "\n"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
