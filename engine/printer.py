"""A tree as text or LaTeX in the author's own order, with names or with their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from . import expression as ex

MAX_TERMS = 8

Leaf = Callable[[ex.Name | ex.Item | ex.Call, Mapping[str, Any]], str]
Rows = Callable[[ex.Fold, Mapping[str, Any]], Sequence[tuple[Mapping[str, Any], str]]]
Test = Callable[[ex.Node, Mapping[str, Any]], bool]

_LEVELS = {
    "or": 1,
    "and": 2,
    "not": 3,
    "compare": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    "neg": 7,
    "**": 8,
}


class TextStyle:
    """Plain text, as a formula file spells it."""

    operators: ClassVar[Mapping[str, str]] = {
        "*": " * ",
        "/": " / ",
        "%": " % ",
        "+": " + ",
        "-": " - ",
        "**": " ** ",
    }
    compare: ClassVar[Mapping[str, str]] = {
        o: f" {o} " for o in ("==", "!=", "<", "<=", ">", ">=", "in", "not in")
    }
    joiner = ", "

    def number(self, text: str) -> str:
        return text

    def name(self, text: str) -> str:
        return text

    def item(self, name: str, var: str) -> str:
        return f"{name}[{var}]"

    def divide(self, left: str, right: str) -> str:
        return f"{left} / {right}"

    def power(self, base: str, exponent: str) -> str:
        return f"{base} ** {exponent}"

    def group(self, text: str) -> str:
        return f"({text})"

    def call(self, function: str, args: str) -> str:
        return f"{function}({args})"

    def loops(self, fold: ex.Fold) -> str:
        return " ".join(
            f"for {p.var} in {p.of + '.' if p.of else ''}{p.source}" for p in fold.loops
        )

    def label(self, text: str) -> str:
        return f" [{text}]" if text else ""


class LatexStyle(TextStyle):
    """LaTeX math."""

    operators: ClassVar[Mapping[str, str]] = {
        "*": r" \cdot ",
        "%": r" \bmod ",
        "+": " + ",
        "-": " - ",
    }
    compare: ClassVar[Mapping[str, str]] = {
        "==": " = ",
        "!=": r" \ne ",
        "<": " < ",
        "<=": r" \le ",
        ">": " > ",
        ">=": r" \ge ",
        "in": r" \in ",
        "not in": r" \notin ",
    }

    def number(self, text: str) -> str:
        return text.replace(",", "{,}")

    def name(self, text: str) -> str:
        first, _, rest = text.partition("_")
        head = first if len(first) == 1 else rf"\mathrm{{{first}}}"
        inner = rest.replace("_", r"\,")
        return rf"{head}_{{\mathrm{{{inner}}}}}" if rest else head

    def item(self, name: str, var: str) -> str:
        return rf"{self.name(name)}^{{({var})}}"

    def divide(self, left: str, right: str) -> str:
        return rf"\frac{{{left}}}{{{right}}}"

    def power(self, base: str, exponent: str) -> str:
        return rf"{base}^{{{exponent}}}"

    def group(self, text: str) -> str:
        return rf"\left({text}\right)"

    def call(self, function: str, args: str) -> str:
        if function == "ceil":
            return rf"\left\lceil {args} \right\rceil"
        if function == "floor":
            return rf"\left\lfloor {args} \right\rfloor"
        named = {"max": r"\max", "min": r"\min"}.get(
            function, self.name(function.replace("_", " "))
        )
        return rf"{named}\left({args}\right)"

    def loops(self, fold: ex.Fold) -> str:
        return r",\ ".join(
            rf"{p.var} \in \mathrm{{{p.source}}}".replace("_", r"\,") for p in fold.loops
        )

    def label(self, text: str) -> str:
        safe = text.replace("_", r"\_")
        return rf"\ \text{{[{safe}]}}" if text else ""


TEXT, LATEX = TextStyle(), LatexStyle()


class Printer:
    """
    Prints a tree.

    With `leaf` names become what it returns (their values); `rows` expands a fold into its items
    and `test` picks the branch of a choice. Without them the formula itself is printed.
    """

    def __init__(
        self,
        style: TextStyle = TEXT,
        leaf: Leaf | None = None,
        rows: Rows | None = None,
        test: Test | None = None,
    ) -> None:
        self.style, self.leaf, self.rows, self.test = style, leaf, rows, test

    def show(self, node: ex.Node, loop: Mapping[str, Any] | None = None, level: int = 0) -> str:
        """The node as text; brackets where its operator binds weaker than `level`."""
        bound = loop or {}
        text, own = self._show(node, bound)
        return self.style.group(text) if own < level else text

    def _show(self, node: ex.Node, loop: Mapping[str, Any]) -> tuple[str, int]:
        style = self.style
        if isinstance(node, ex.Number):
            return style.number(node.text), 9
        if isinstance(node, ex.Text):
            return f'"{node.value}"', 9
        if isinstance(node, ex.Truth):
            return str(node.value).lower(), 9
        if isinstance(node, ex.Words):
            return "[" + ", ".join(self.show(i, loop) for i in node.items) + "]", 9
        if isinstance(node, ex.Position):
            return f"{node.id}[{self.show(node.index, loop)}]", 9
        if isinstance(node, (ex.Name, ex.Item)):
            if self.leaf is not None:
                return self.leaf(node, loop), 9
            return (
                (style.name(node.id), 9)
                if isinstance(node, ex.Name)
                else (style.item(node.id, node.var), 9)
            )
        if isinstance(node, ex.Binary):
            return self._binary(node, loop)
        if isinstance(node, ex.Negative):
            return "-" + self.show(node.value, loop, _LEVELS["neg"]), _LEVELS["neg"]
        if isinstance(node, ex.Not):
            return "not " + self.show(node.value, loop, _LEVELS["not"]), _LEVELS["not"]
        if isinstance(node, ex.Compare):
            level = _LEVELS["compare"] + 1
            return (
                self.show(node.left, loop, level)
                + style.compare[node.op]
                + self.show(node.right, loop, level)
            ), _LEVELS["compare"]
        if isinstance(node, ex.Logic):
            level = _LEVELS[node.op]
            return f" {node.op} ".join(self.show(p, loop, level + 1) for p in node.parts), level
        if isinstance(node, ex.Choice):
            if self.test is not None:
                return self._show(node.yes if self.test(node.test, loop) else node.no, loop)
            return (
                f"{self.show(node.yes, loop, 1)} if {self.show(node.test, loop, 1)} else "
                f"{self.show(node.no, loop)}"
            ), 0
        if isinstance(node, ex.Call):
            if (
                self.leaf is not None
                and self.test is not None
                and node.function in ("selected", "named")
            ):
                return self.leaf(node, loop), 9  # words among numbers say less than the number
            return style.call(
                node.function, style.joiner.join(self.show(a, loop) for a in node.args)
            ), 9
        if isinstance(node, ex.Fold):
            return self._fold(node, loop)
        raise TypeError(f"no such node: {node!r}")

    def _binary(self, node: ex.Binary, loop: Mapping[str, Any]) -> tuple[str, int]:
        style, level = self.style, _LEVELS[node.op]
        if node.op == "/" and style is LATEX:
            return style.divide(self.show(node.left, loop), self.show(node.right, loop)), 9
        if node.op == "**":
            return style.power(
                self.show(node.left, loop, level + 1), self.show(node.right, loop)
            ), level
        left = self.show(node.left, loop, level)
        right = self.show(node.right, loop, level if node.op in "+*" else level + 1)
        return f"{left}{style.operators[node.op]}{right}", level

    def _fold(self, node: ex.Fold, loop: Mapping[str, Any]) -> tuple[str, int]:
        style = self.style
        if self.rows is None:
            where = style.loops(node)
            condition = ""
            if node.condition is not None:
                shown = self.show(node.condition, loop)
                where += rf",\ {shown}" if style is LATEX else ""
                condition = f" if {shown}"
            if style is LATEX and node.kind == "sum":
                return rf"\sum_{{{where}}} {self.show(node.body, loop, 6)}", 5
            if style is LATEX:
                return style.call(node.kind, rf"{self.show(node.body, loop)} : {where}"), 9
            return f"{node.kind}({self.show(node.body, loop)} {style.loops(node)}{condition})", 9
        rows = self.rows(node, loop)
        level = 6 if node.kind == "sum" else 0
        terms = [
            self.show(node.body, inner, level) + style.label(label)
            for inner, label in rows[:MAX_TERMS]
        ]
        if len(rows) > MAX_TERMS:
            terms.append(f"... ({len(rows) - MAX_TERMS} more)")
        if node.kind == "sum":
            return (" + ".join(terms) or "0"), (5 if len(terms) > 1 else 6)
        return style.call(node.kind, style.joiner.join(terms)), 9
