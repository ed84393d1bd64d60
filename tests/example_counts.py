"""Decides how many random examples hypothesis draws for a test: the profiles of a run.

A test whose examples are slower or faster than usual, or that has many versions, draws a part or a
multiple of them: `@settings(max_examples=examples(1 / 16))`.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.configuration import set_hypothesis_home_dir

_DIRECTORY = Path(__file__).parents[1] / "build" / "hypothesis"
USUAL = "usual"


def register_profiles() -> None:
    """Register the profiles of `--hypothesis-profile`, and load the usual one."""
    set_hypothesis_home_dir(_DIRECTORY)
    # A loaded machine is not a bug: pytest's timeout bounds a test, not hypothesis' clock.
    settings.register_profile(USUAL, deadline=None, max_examples=60)
    # `make check`
    settings.register_profile("few", deadline=None, max_examples=20)
    # `make fuzz` and `make test-long`
    settings.register_profile("long", deadline=None, max_examples=5_000)
    # `make mutants` uses the same examples each time, and does not shrink a failing example.
    settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=60,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile(USUAL)


def examples(times: float) -> int:
    """Return `times` as many examples as the run's profile has, and at least two.

    The first one is always the simplest; the second one is random.
    """
    return max(2, round(settings().max_examples * times))
