"""Units of expressions: one unit in a sum or comparison, and the declared one as the result."""

from __future__ import annotations

from collections.abc import Callable

from . import expression as ex
from .printer import TEXT, Printer
from .units import ONE, Unit, multiply

TRUTH = Unit((("(truth)", 1),), "truth")
TEXT_UNIT = Unit((("(text)", 1),), "text")
ANY: Unit | None = None  # a bare 0, which fits everywhere

COUNTS = ("selected", "named", "layers_in")  # functions that count layers
UnitOf = Callable[[str], Unit | None]


class Mismatch(Exception):
    """Two units that cannot be added or compared."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message, self.at = message, at


def container(node: ex.Node, names: UnitOf) -> None:
    """Raise `Mismatch` where the right side of `in` holds nothing that could be in it."""
    unit = TEXT_UNIT if isinstance(node, ex.Words) else unit_of(node, names)
    if isinstance(node, ex.Number) or unit not in (TEXT_UNIT, None):
        message = (
            f"`{Printer(TEXT).show(node)}` is no list; write `in [...]`, or `in` a flag of names."
        )
        raise Mismatch(message, node.at)


def unit_of(node: ex.Node, names: UnitOf) -> Unit | None:
    """The unit of an expression; raises `Mismatch`."""
    if isinstance(node, ex.Number):
        return ANY if node.value == 0 else ONE
    if isinstance(node, ex.Text):
        return TEXT_UNIT
    if isinstance(node, (ex.Truth, ex.Not, ex.Logic, ex.Compare)):
        if isinstance(node, (ex.Not, ex.Logic)):
            for part in ex.children(node):
                truth(part, names)
        if isinstance(node, ex.Compare) and node.op in ("in", "not in"):
            container(node.right, names)
        elif isinstance(node, ex.Compare):
            same(unit_of(node.left, names), unit_of(node.right, names), node.left, node.right)
        return TRUTH
    if isinstance(node, (ex.Name, ex.Item)):
        return names(node.id)
    if isinstance(node, ex.Negative):
        return unit_of(node.value, names)
    if isinstance(node, ex.Binary):
        return _binary(node, names)
    if isinstance(node, ex.Choice):
        truth(node.test, names)
        return same(unit_of(node.yes, names), unit_of(node.no, names), node.yes, node.no)
    if isinstance(node, ex.Call) and node.function in COUNTS:
        return ONE
    if isinstance(node, ex.Call):
        result = unit_of(node.args[0], names)
        for other in node.args[1:]:
            result = same(result, unit_of(other, names), node.args[0], other)
        return result
    if isinstance(node, ex.Fold):
        if node.condition is not None:
            truth(node.condition, names)
        body = unit_of(node.body, names)
        return ONE if node.kind == "count" else TRUTH if node.kind == "any" else body
    return TEXT_UNIT


def truth(node: ex.Node, names: UnitOf) -> None:
    """A condition has to be true or false."""
    unit = unit_of(node, names)
    if unit is not None and not unit.same(TRUTH):
        shown = Printer(TEXT).show(node)
        raise Mismatch(f"`{shown}` is in {unit}; a condition has to be true or false.", node.at)


def _binary(node: ex.Binary, names: UnitOf) -> Unit | None:
    left, right = unit_of(node.left, names), unit_of(node.right, names)
    if node.op in "+-":
        return same(left, right, node.left, node.right)
    if left is None or (right is None and node.op != "**"):
        return ANY
    if node.op == "**":
        assert isinstance(node.right, ex.Number)
        result = ONE
        for _ in range(int(node.right.value)):
            result = multiply(result, left)
        return result
    if node.op == "%":
        return same(left, right, node.left, node.right)
    assert right is not None
    return multiply(left, right, 1 if node.op == "*" else -1)


def same(
    left: Unit | None, right: Unit | None, left_node: ex.Node, right_node: ex.Node
) -> Unit | None:
    """The common unit of two operands."""
    if left is None or right is None:
        return right if left is None else left
    if left.same(right):
        return left
    show = Printer(TEXT).show
    raise Mismatch(
        f"`{show(left_node)}` is in {left}, `{show(right_node)}` is in {right}; a sum or a "
        "comparison needs one unit.",
        right_node.at,
    )
