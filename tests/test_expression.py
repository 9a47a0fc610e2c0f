"""What the formula language reads, what it refuses, and that nothing else can happen."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from fitcheck.engine import expression as ex
from fitcheck.engine.algebra import EvaluationError
from fitcheck.engine.local_values import evaluate

# Of this process, so that a busy machine changes nothing; coverage slows it several times.
SECONDS = 30.0 if "COVERAGE_PROCESS_START" in os.environ else 1.0

VALUES: dict[str, Any] = {
    "a": 3,
    "b": 4,
    "x": Fraction(1, 2),
    "yes": True,
    "word": "nf4",
    "words": ("q_proj", "v_proj"),
    "layers": [
        {"h": 2, "kind": "x", "modules": [{"d": 5}, {"d": 7}]},
        {"h": 3, "kind": "y", "modules": [{"d": 11}]},
    ],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1_000 + 2", 1002),
        ("7.4", Fraction(37, 5)),
        ("7 / 2", Fraction(7, 2)),
        ("6 / 2", 3),
        ("2 + 3 * 4 ** 2", 50),
        ("(2 + 3) * 4", 20),
        ("10 - 4 - 3", 3),
        ("24 / 4 / 2", 3),
        ("-2 ** 2", -4),
        ("-a * -b", 12),
        ("-7 % 4", 1),
        ("7.5 % 2", Fraction(3, 2)),
        ("2 * 7 % 4", 2),
        ("1 + 2 == 3", True),
        ("not 1 == 2 and false or true", True),
        ("not (true or false)", False),
        ("true or 1 / 0 > 1", True),
        ("false and 1 / 0 > 1", False),
        ("1 if false else 2 if false else 3", 3),
        ("1 if true else 1 / 0", 1),
        ('word == "nf4"', True),
        ("word != 'nf4'", False),
        ('word in ["nf4", "int8"]', True),
        ('"k_proj" not in words', True),
        ("max(1, 2, a) + Max(1, 5) + min(4, b) + Min(9, 2)", 14),
        ("ceil(x) + ceiling(2.1) + floor(-x)", 3),
        ("power_of_two_floor(1000.5)", 512),
        ("sum(h[g] for g in layers)", 5),
        ("sum(h[g] * d[m] for g in layers for m in g.modules)", 57),
        ('max(d[m] for g in layers if kind[g] == "x" for m in g.modules if d[m] > 5)', 7),
        ("min(h[g] for g in layers)", 2),
        ("count(1 for g in layers if h[g] > 2)", 1),
        ("any(h[g] > 2 for g in layers) and not any(h[g] > 9 for g in layers)", True),
        ("list(kind[g] for g in layers) == list(kind[g] for g in layers)", True),
        ("count(1 for w in words if w == \"q_proj\")", 1),
        ("sum(h[g] for g in layers if h[g] > 9)", 0),
        ("(\n  a\n  + b\n)", 7),
        ("  a  ", 3),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    found = evaluate(ex.parse(text), VALUES)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text", ["1 / 0", "1 % 0", "max(h[g] for g in layers if h[g] > 9)",
                                  "power_of_two_floor(0.9)"])  # fmt: skip
def test_no_value(text: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(ex.parse(text), VALUES)


def test_names_and_offsets() -> None:
    tree = ex.parse(" a +\nb * h[g]")
    assert ex.names(tree) == {"a", "b", "h"}
    assert [node.at for node in ex.walk(tree)] == [1, 1, 5, 5, 9]
    assert ex.names(ex.parse("sum(h[g] for g in layers if k[g] > c)")) == {"h", "k", "c"}
    assert ex.parse("pattern[i + 1]") == ex.Position(0, "pattern", ex.parse(" " * 8 + "i + 1"))


@pytest.mark.parametrize(
    ("text", "offset", "says"),
    [
        ("", 0, "Not an expression"),
        ("a +", 3, "Not an expression"),
        ("a + 1.", 4, "not a plain number"),
        ("a + 1e9", 4, "not a plain number"),
        ("a + 0x10", 4, "not a plain number"),
        ("a + 1_00", 4, "not a plain number"),
        ("a + .5", 4, "not a plain number"),
        ("a + 3j", 4, "not a plain number"),
        ("1if a else 2", 0, "`1if` is not a plain number"),
        ("a + " + "9" * 25, 4, "not a plain number"),
        ("a ** b", 5, "exponent has to be a number"),
        ("a ** 5", 5, "from 0 to 4"),
        ("a ** 0.5", 5, "from 0 to 4"),
        ("a ** -1", 5, "from 0 to 4"),
        ("2 ** 3 ** 2", 5, "from 0 to 4"),
        ("b + (a ** 4) ** 4", 4, "power of a power"),
        ("a // b", 0, "operator is not part"),
        ("a < b < c", 0, "a < b and b < c"),
        ("a is b", 0, "instead of `is`"),
        ("a and True", 6, "true or false, in lower case"),
        ("None", 0, "true or false, in lower case"),
        ('a == "x!"', 5, "not a plain word"),
        ('a == u"x"', 5, "not a plain word"),
        ('a == """x"""', 5, "not a plain word"),
        ('a == "x" "y"', 5, "not a plain word"),
        ('a == b"x"', 5, "not a plain number"),
        ("a # b", 2, "'#' is not allowed"),
        ("a\t+ b", 1, "is not allowed"),
        ("a + ö", 4, "is not allowed"),
        ("f(a)", 0, "`f(...)` is not part"),
        ("max(a)", 0, "`max` takes 2 to 8 values"),
        ("ceil(a, b)", 0, "`ceil` takes 1 value"),
        ("max(a, b, key=c)", 0, "not part of the formula language"),
        ("ceil(h[g] for g in xs)", 0, "cannot run over a list"),
        ("h[g.i]", 2, "not part of the formula language"),
        ("h[1:2]", 0, "write name[g]"),
        ("h[g][i]", 0, "write name[g]"),
        ("sum(a for g, m in xs)", 10, "with one name"),
        ("sum(a for g in f(x))", 15, "Write `for g in list`"),
        ("sum(a for g in x for h in y " + "for i in z " * 5 + ")", 3, "More than 6 loops"),
        ("[a for a in b]", 0, "not part of the formula language"),
        ("~a", 0, "not part of the formula language"),
        ("+a", 0, "not part of the formula language"),
    ],
)  # fmt: skip
def test_refused_with_the_place_and_the_reason(text: str, offset: int, says: str) -> None:
    with pytest.raises(ex.ExpressionError) as caught:
        ex.parse(text)
    assert caught.value.offset == offset and says in caught.value.message
    assert caught.value.code in ("F202", "F209")
    assert caught.value.name in ("not-in-language", "too-large")


HOSTILE = {
    "import": "__import__('os').system('touch /tmp/fitcheck-was-here')",
    "import call": "__import__(name)",
    "subclasses": "().__class__.__base__.__subclasses__()",
    "attribute": "a.b",
    "method": "a.b()",
    "globals": "globals()[a]",
    "exec": "exec(a)",
    "eval": "eval(a)",
    "open": "open(a)",
    "getattr": "getattr(a, b)",
    "lambda": "lambda: 0",
    "called lambda": "(lambda: 0)()",
    "lambdas": "lambda:" * 200 + "0",
    "walrus": "(a := 1)",
    "assignment": "a = 1",
    "statement": "import os",
    "two statements": "a; b",
    "two lines": "a\nb",
    "f-string": "f'{a}'",
    "f-string call": "f'{open(a)}'",
    "bytes": "b'abc'",
    "format": "'%s' % a == b and '{0.__class__}'",
    "percent": "'a%s'",
    "escape": "'\\x41'",
    "power tower": "9**9**9",
    "nested powers": "((((9**4)**4)**4)**4)",
    "powers in a sum": "(1 + (9**4 + 1))**4",
    "huge exponent": "a ** 99999999",
    "shift": "1 << 999999999",
    "huge number": "9" * 1000,
    "huge float": "1e999",
    "complex": "1j",
    "star": "max(*a, b)",
    "double star": "max(a, **b)",
    "await": "await a",
    "yield": "(yield a)",
    "yield from": "(yield from a)",
    "async loop": "sum(a async for g in xs)",
    "set": "{a, b}",
    "dict": "{a: b}",
    "comprehension": "{a for a in b}",
    "tuple": "(a, b)",
    "slice": "a[::1]",
    "ellipsis": "...",
    "matrix": "a @ b",
    "bits": "a & b",
    "comment": "a # b",
    "comment across lines": "a # b\n + c",
    "continued line": "a + \\\n b",
    "null byte": "a\0b",
    "null byte alone": "\0",
    "byte order mark": "\ufeffa",
    "full-width letter": "\uff41",
    "full-width call": "\uff4dax(a, b)",
    "other digits": "\u0661 + 1",
    "superscript": "a\u00b2",
    "right to left": "a \u202e b",
    "surrogate": "a\ud800",
    "form feed": "\f a",
    "carriage return": "a\r+ b",
    "escape code": "\x1b[31m",
    "brackets, 10 MB": "(" * 10_000_000,
    "brackets": "(" * 700 + "a" + ")" * 700,
    "list brackets": "[" * 500 + "]" * 500,
    "mixed brackets": "([{" * 200,
    "a long name, 10 MB": "a" * 10_000_000,
    "spaces, 10 MB": " " * 10_000_000,
    "minus signs": "-" * 1400 + "a",
    "minus signs apart": "- " * 700 + "a",
    "nots": "not " * 350 + "a",
    "tildes": "~" * 1400 + "a",
    "sum": "+".join("a" * 700),
    "calls": "max(a, " * 39 + "a" + ")" * 39,
    "choices": "a if b else " * 120 + "a",
    "comparisons": "<".join("a" * 700),
    "attributes": "a" + ".b" * 700,
    "subscripts": "a" + "[b]" * 400,
    "powers": "**".join("a" * 400),
    "number and keyword": "1if a else 2",
    "loops": "sum(1 " + "for g in xs " * 120 + ")",
    "nested loops": "sum(" * 39 + "1" + " for g in xs)" * 39,
    "strings": "'a' " * 300,
    "backticks": "`a`",
    "question": "a ? b : c",
    "dollar": "$a",
    "bang": "!a",
    "newlines": "\n" * 1400,
    "unclosed string": "'a",
    "unclosed triple": "'''a",
    "unclosed bracket": "max(a, b",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_text_is_refused_at_once(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ex.ExpressionError) as caught:
        ex.parse(text)
    assert time.process_time() - started < SECONDS
    error = caught.value
    assert error.code in ("F202", "F209") and 0 <= error.offset <= len(text)
    assert len(error.message) < 400 and error.message.isprintable()


@pytest.mark.parametrize("value", [None, 3, 1.5, True, b"a", ["a"], {"a": 1}])
def test_only_text_is_read(value: Any) -> None:
    with pytest.raises(ex.ExpressionError, match="has to be text"):
        ex.parse(value)


PIECES = [
    "a", "b", "g", "h[g]", "p[1]", "1", "0.5", "1_000", "'w'", '"nf4"', "true", "None", "+", "-",
    "*", "/", "%", "**", "//", "(", ")", "[", "]", "{", "}", ",", ".", ":", ":=", "=", "==", "<",
    "!=", " in ", " not in ", " and ", " or ", " not ", " if ", " else ", " for ", " lambda ",
    "max(", "sum(", "count(", "list(", "f'", "'", '"', "#", "\\", "\n", " ", "@", "~", "&", "...",
    "__import__('os')", ".__class__", "await ", "yield ", "1e9", "0x1", "\0",
    "\t", "\uff41", "-" * 29,
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="ab19_.,()[]+-*/%<>=!'\" \n", max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join),
)


@settings(max_examples=1500)
@given(TEXTS)
@example("a if a else a")
@example("sum(h[g] for g in layers)")
def test_any_text_becomes_a_tree_or_a_refusal(text: str) -> None:
    try:
        tree = ex.parse(text)
    except ex.ExpressionError as error:
        assert error.code in ("F202", "F209") and 0 <= error.offset <= len(text), error.offset
        return
    for node in ex.walk(tree):
        assert type(node).__module__ == ex.__name__ and 0 <= node.at < len(text)
    assert ex.parse(text) == tree


@settings(max_examples=300)
@given(
    st.recursive(
        st.sampled_from(["a", "9_999_999", "0.5", "h[g]", "9 ** 4"]),
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from(["+", "*", "/", "-"]), part).map(
                lambda t: f"({t[0]}) {t[1]} ({t[2]})"
            ),
            part.map(lambda t: f"({t}) ** 4"),
            part.map(lambda t: f"sum({t} for g in layers for m in g.modules)"),
        ),
        max_leaves=40,
    )
)
def test_what_is_read_is_evaluated_in_no_time(text: str) -> None:
    try:
        tree = ex.parse(text)
    except ex.ExpressionError:
        return
    started = time.process_time()
    try:
        value = evaluate(tree, {**VALUES, "a": 10**24})
    except (EvaluationError, KeyError):  # KeyError: g outside its loop, which `lint` finds
        return
    assert time.process_time() - started < SECONDS
    assert abs(Fraction(value)).numerator.bit_length() < 200_000
