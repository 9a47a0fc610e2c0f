"""--stack: versions of libraries as people write them."""

from __future__ import annotations

import pytest

from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem

FLAGS = rules_for().flags


@pytest.mark.parametrize(
    "text", ["transformers=4.57.6", "transformers==4.57.6", "transformers == 4.57.6"]
)
def test_a_version_is_written_with_one_sign_or_two(text: str) -> None:
    assert FLAGS.stack(text) == {"transformers": "4.57.6"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("transformers=banana", "--stack transformers: banana is not a version such as 4.57"),
        ("transformers==", "write transformers=VERSION"),
        ("transformers", "write transformers=VERSION"),
        ("transformers>=5.0", "one version of transformers"),
        ("transformers ~=5.0", "one version of transformers"),
        ("torch==2.0", "'torch' is no library that something hangs on here"),
    ],
)
def test_what_is_no_version_is_said_of_stack(text: str, says: str) -> None:
    with pytest.raises(InputProblem) as caught:
        FLAGS.stack(text)
    assert says in str(caught.value) and "--stack" in str(caught.value)
    assert "--transformers" not in str(caught.value)
