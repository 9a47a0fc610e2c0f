"""What several test modules need: a repeatable hypothesis, and estimates of a counted model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from fitcheck.engine.api import choose_card, rules_for
from fitcheck.engine.architecture import resolve
from fitcheck.engine.report import Prepared, Report, build_report

# The same examples on every run: a red test is red for everybody, and on the next run too.
settings.register_profile(
    "fitcheck",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fitcheck")

Estimate = Callable[..., Report]


@pytest.fixture(scope="session")
def counted_estimate() -> Estimate:
    """`counted_estimate(config, counted, gpu=..., **flags)`: a config with its exact count."""

    def estimate(
        config: Mapping[str, Any], counted: int | None, *, gpu: str | None = None, **flags: Any
    ) -> Report:
        rules = rules_for()
        model = resolve(rules.architectures, "config", config, "a test", counted, stack=rules.stack)
        card = choose_card(rules, gpu, None)
        return build_report(Prepared(rules, rules.flags.resolve(flags), card, model))

    return estimate
