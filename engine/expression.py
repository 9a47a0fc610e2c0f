"""The formula language: text to one small tree, by a whitelist over Python's expression grammar.

The text is never executed. Python's parser reads it, every node class that is not listed here is
refused, and the result is a tree of the frozen classes below, from which the exact evaluator, the
NumPy evaluator and the sympy object are made (`algebra.py`, `symbolic.py`).

Grammar::

    names, exact numbers (12, 7.4), quoted words, true, false
    + - * / %   ** with an exponent 0..4   unary -
    == != < <= > >= in, not in           and or not          a if c else b
    max min ceil floor power_of_two_floor                    [a, b]
    sum max min count any list (body for g in layer_groups for m in g.modules if condition)
    name[g]   the value of `name` for the list item `g`
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from .record import record

MAX_LENGTH = 1_500
MAX_NODES = 300
MAX_DEPTH = 30
MAX_BRACKETS = 40
MAX_EXPONENT = 4
MAX_DIGITS = 24
MAX_LOOPS = 6
CHARACTERS = frozenset(map(chr, range(ord(" "), ord("~") + 1))) - {"#", "\\"} | {"\n"}

FUNCTIONS = {
    "max": (2, 8),
    "min": (2, 8),
    "ceil": (1, 1),
    "floor": (1, 1),
    "power_of_two_floor": (1, 1),
    "selected": (3, 3),
    "named": (3, 3),
    "layers_in": (4, 4),
}
SPELLINGS = {"Max": "max", "Min": "min", "ceiling": "ceil"}
FOLDS = ("sum", "max", "min", "count", "any", "list")
WORDS = {"true": True, "false": False}
LANGUAGE = (
    "names, numbers, + - * / % **, comparisons, and or not, a if c else b, max, min, ceil, floor, "
    "power_of_two_floor, selected(targets, path, places), named(words, path, places), "
    "layers_in(places, first, end, step), and sum, max, min, count, any over a list"
)
RESERVED = frozenset(
    {
        "and",
        "or",
        "not",
        "if",
        "else",
        "for",
        "in",
        "is",
        "lambda",
        "true",
        "false",
        "null",
        *FUNCTIONS,
        *SPELLINGS,
        *FOLDS,
    }
)


class ExpressionError(Exception):
    """The text is not in the language; `offset` counts characters from its start."""

    def __init__(self, code: str, name: str, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.code, self.name, self.message, self.offset = code, name, message, offset


@record
class Node:
    """A tree node; `at` is its offset in the text."""

    at: int


@record
class Number(Node):
    value: int | Fraction
    text: str


@record
class Text(Node):
    value: str


@record
class Truth(Node):
    value: bool


@record
class Words(Node):
    """A list written in the formula, for `in`."""

    items: tuple[Node, ...]


@record
class Name(Node):
    id: str


@record
class Item(Node):
    """`id[var]`: a field or a quantity of the list item bound to `var`."""

    id: str
    var: str


@record
class Position(Node):
    """`id[index]`: an entry of a list or a letter of a pattern (architecture files only)."""

    id: str
    index: Node


@record
class Binary(Node):
    op: str  # + - * / % **
    left: Node
    right: Node


@record
class Negative(Node):
    value: Node


@record
class Compare(Node):
    op: str  # == != < <= > >= in "not in"
    left: Node
    right: Node


@record
class Logic(Node):
    op: str  # and or
    parts: tuple[Node, ...]


@record
class Not(Node):
    value: Node


@record
class Choice(Node):
    test: Node
    yes: Node
    no: Node


@record
class Call(Node):
    function: str
    args: tuple[Node, ...]


@record
class Loop:
    """`for var in source`, or `for var in of.source` where `of` is an outer loop variable."""

    var: str
    source: str
    of: str | None
    at: int


@record
class Fold(Node):
    kind: str
    body: Node
    loops: tuple[Loop, ...]
    condition: Node | None


_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
MAX_SIGNS = 30
_SIGNS = rf"(?:\bnot\b\s*|[-+~]\s*){{{MAX_SIGNS},}}"
_NUMBER = r"[0-9]+(_[0-9]{3})*(\.[0-9]+)?"
_NUMBER_OR_WORD = re.compile(r"""\"[^"]*"|'[^']*'|(?<![\w.])([0-9][\w.]*)""")
_WORD = r"""(["'])[\w .+*/:|,@-]{0,60}\1"""


def parse(text: str) -> Node:
    """
    Parse one expression; trees are frozen, so a text that was parsed before is not parsed again.

    Raises
    ------
    ExpressionError
        With the lint code, a sentence in the file's own words, and the offset of the trouble.
    """
    if not isinstance(text, str):
        raise ExpressionError("F202", "not-in-language", "An expression has to be text.")
    return _parsed(text)


@lru_cache(maxsize=16_384)
def _parsed(text: str) -> Node:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            "F209",
            "too-large",
            f"{len(text):,} characters; an expression has at most {MAX_LENGTH:,}. "
            "Split it into quantities of their own.",
        )
    if not CHARACTERS.issuperset(text):
        strange = next(i for i, c in enumerate(text) if c not in CHARACTERS)
        raise ExpressionError(
            "F202",
            "not-in-language",
            f"The character {text[strange]!r} is not allowed; use plain ASCII, without # and \\.",
            strange,
        )
    _check_brackets(text)
    _check_numbers(text)
    flat = text.replace("\n", " ")
    lead = len(flat) - len(flat.lstrip())
    try:
        tree = ast.parse(flat.strip(), mode="eval").body
    except SyntaxError as error:
        offset = lead + (error.offset - 1 if error.offset else len(flat.strip()))  # 0: at the end
        raise ExpressionError(
            "F202", "not-in-language", f"Not an expression: {error.msg}.", min(offset, len(text))
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("F209", "too-large", "Nested too deeply to read.") from None
    return _Reader(flat.strip(), lead).read(tree)


def _check_brackets(text: str) -> None:
    depth, many = 0, sum(map(text.count, "([{")) > MAX_BRACKETS
    for offset, char in enumerate(text if many else ""):
        depth += (char in "([{") - (char in ")]}")
        if depth > MAX_BRACKETS:
            raise ExpressionError(
                "F209", "too-large", f"More than {MAX_BRACKETS} open brackets.", offset
            )
    signs = text.count("not") + sum(map(text.count, "-+~"))
    if signs >= MAX_SIGNS and (run := re.search(_SIGNS, text)):
        raise ExpressionError("F209", "too-large", "Too many signs in a row.", run.start())


def _check_numbers(text: str) -> None:
    """Refuse what Python reads with a warning, such as `1if a`, before it is read."""
    for found in _NUMBER_OR_WORD.finditer(text):
        number = found[1]
        if not number or (number.isdigit() and len(number) <= MAX_DIGITS):
            continue
        if not re.fullmatch(_NUMBER, number) or len(number) > MAX_DIGITS:
            raise ExpressionError(
                "F202",
                "not-in-language",
                f"`{number[:40]}` is not a plain number; write digits with at most one decimal "
                f"point ({MAX_DIGITS} characters at most).",
                found.start(),
            )


class _Reader:
    """Turns Python's nodes into ours and refuses the rest."""

    def __init__(self, text: str, lead: int) -> None:
        self.text, self.lead, self.nodes, self.loops = text, lead, 0, 0

    def refuse(
        self, node: ast.AST, message: str, code: str = "F202", name: str = "not-in-language"
    ) -> ExpressionError:
        return ExpressionError(code, name, message, self.lead + getattr(node, "col_offset", 0))

    def source(self, node: ast.AST) -> str:
        """The text of a node; it is one line of ASCII, so columns are characters."""
        return self.text[getattr(node, "col_offset", 0) : getattr(node, "end_col_offset", 0)]

    def read(self, node: ast.expr, depth: int = 0) -> Node:
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise self.refuse(node, f"Nested deeper than {MAX_DEPTH} levels.", "F209", "too-large")
        if self.nodes > MAX_NODES:
            raise self.refuse(
                node,
                f"More than {MAX_NODES} parts; split it into quantities of their own.",
                "F209",
                "too-large",
            )
        at = self.lead + node.col_offset
        if isinstance(node, ast.Constant):
            return self.constant(node, at)
        if isinstance(node, ast.Name):
            return Truth(at, WORDS[node.id]) if node.id in WORDS else Name(at, node.id)
        if isinstance(node, ast.BinOp):
            return self.binary(node, at, depth)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub):
                return Negative(at, self.read(node.operand, depth + 1))
            if isinstance(node.op, ast.Not):
                return Not(at, self.read(node.operand, depth + 1))
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.read(v, depth + 1) for v in node.values)
            return Logic(at, "and" if isinstance(node.op, ast.And) else "or", parts)
        if isinstance(node, ast.Compare):
            return self.compare(node, at, depth)
        if isinstance(node, ast.IfExp):
            return Choice(
                at,
                self.read(node.test, depth + 1),
                self.read(node.body, depth + 1),
                self.read(node.orelse, depth + 1),
            )
        if isinstance(node, ast.List):
            return Words(at, tuple(self.read(e, depth + 1) for e in node.elts))
        if isinstance(node, ast.Subscript):
            return self.subscript(node, at, depth)
        if isinstance(node, ast.Call):
            return self.call(node, at, depth)
        raise self.refuse(
            node,
            f"`{self.source(node)[:60]}` is not part of the formula language. Allowed: {LANGUAGE}.",
        )

    def subscript(self, node: ast.Subscript, at: int, depth: int) -> Node:
        if not isinstance(node.value, ast.Name) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise self.refuse(
                node, f"`{self.source(node)[:60]}`: write name[g], with g from a `for g in ...`."
            )
        if isinstance(node.slice, ast.Name):
            return Item(at, node.value.id, node.slice.id)
        return Position(at, node.value.id, self.read(node.slice, depth + 1))

    def constant(self, node: ast.Constant, at: int) -> Node:
        written = self.source(node)
        if isinstance(node.value, str):
            if re.fullmatch(_WORD, written):
                return Text(at, node.value)
            raise self.refuse(node, f"{written[:60]} is not a plain word.")
        if node.value is None or isinstance(node.value, bool):
            raise self.refuse(node, f"Write true or false, in lower case, instead of `{written}`.")
        if not (written.isdigit() or re.fullmatch(_NUMBER, written)):  # .5, bytes
            raise self.refuse(node, f"`{written[:40]}` is not a plain number.")
        digits = written.replace("_", "")
        if digits.isdigit():
            return Number(at, int(digits), written)
        exact = Fraction(digits)
        return Number(at, exact.numerator if exact.denominator == 1 else exact, written)

    def binary(self, node: ast.BinOp, at: int, depth: int) -> Node:
        op = _BINARY.get(type(node.op))
        if op is None:
            raise self.refuse(
                node,
                f"`{self.source(node)[:60]}`: this operator is not part of the "
                f"formula language. Allowed: {LANGUAGE}.",
            )
        left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
        if op == "**" and not (
            isinstance(right, Number)
            and isinstance(right.value, int)
            and right.value <= MAX_EXPONENT
        ):
            raise self.refuse(
                node.right, f"An exponent has to be a number from 0 to {MAX_EXPONENT}."
            )
        if op == "**" and any(isinstance(n, Binary) and n.op == "**" for n in walk(left)):
            raise self.refuse(node, "A power of a power: multiply the exponents out.")
        return Binary(at, op, left, right)

    def compare(self, node: ast.Compare, at: int, depth: int) -> Node:
        if len(node.ops) != 1:
            raise self.refuse(node, "Write `a < b and b < c` instead of `a < b < c`.")
        op = _COMPARE.get(type(node.ops[0]))
        if op is None:
            raise self.refuse(node, "Write `==` or `!=` instead of `is`.")
        left = self.read(node.left, depth + 1)
        return Compare(at, op, left, self.read(node.comparators[0], depth + 1))

    def call(self, node: ast.Call, at: int, depth: int) -> Node:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.refuse(
                node,
                f"`{self.source(node)[:60]}` is not part of the formula language. "
                f"Allowed: {LANGUAGE}.",
            )
        function = SPELLINGS.get(node.func.id, node.func.id)
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            if function not in FOLDS:
                raise self.refuse(
                    node, f"`{node.func.id}` cannot run over a list; {', '.join(FOLDS)} can."
                )
            return self.fold(function, node.args[0], at, depth)
        if function not in FUNCTIONS:
            raise self.refuse(
                node,
                f"`{node.func.id}(...)` is not part of the formula language. Allowed: {LANGUAGE}.",
            )
        low, high = FUNCTIONS[function]
        if not low <= len(node.args) <= high:
            count = f"{low} value" if low == high else f"{low} to {high} values"
            raise self.refuse(node, f"`{function}` takes {count}, not {len(node.args)}.")
        return Call(at, function, tuple(self.read(a, depth + 1) for a in node.args))

    def fold(self, kind: str, node: ast.GeneratorExp, at: int, depth: int) -> Node:
        loops: list[Loop] = []
        conditions: list[Node] = []
        self.loops += len(node.generators)
        if self.loops > MAX_LOOPS:
            message = f"More than {MAX_LOOPS} loops; split it into quantities of their own."
            raise self.refuse(node, message, "F209", "too-large")
        for part in node.generators:
            if not isinstance(part.target, ast.Name) or part.is_async:
                raise self.refuse(part.target, "Write `for g in list`, with one name.")
            where = part.iter
            if isinstance(where, ast.Name):
                loop = Loop(part.target.id, where.id, None, self.lead + where.col_offset)
            elif isinstance(where, ast.Attribute) and isinstance(where.value, ast.Name):
                loop = Loop(
                    part.target.id, where.attr, where.value.id, self.lead + where.col_offset
                )
            else:
                raise self.refuse(where, "Write `for g in list` or `for m in g.list`.")
            loops.append(loop)
            conditions += [self.read(c, depth + 1) for c in part.ifs]
        condition: Node | None = None
        if len(conditions) == 1:
            condition = conditions[0]
        elif conditions:
            condition = Logic(conditions[0].at, "and", tuple(conditions))
        return Fold(at, kind, self.read(node.elt, depth + 1), tuple(loops), condition)


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node, in reading order."""
    if isinstance(node, (Binary, Compare)):
        return node.left, node.right
    if isinstance(node, (Negative, Not)):
        return (node.value,)
    if isinstance(node, Logic):
        return node.parts
    if isinstance(node, Choice):
        return node.test, node.yes, node.no
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Words):
        return node.items
    if isinstance(node, Position):
        return (node.index,)
    if isinstance(node, Fold):
        return (node.body,) if node.condition is None else (node.body, node.condition)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    for part in children(node):
        yield from walk(part)


def names(node: Node) -> set[str]:
    """Every name the expression reads, without loop variables and list names."""
    return {n.id for n in walk(node) if isinstance(n, (Name, Item, Position))}
