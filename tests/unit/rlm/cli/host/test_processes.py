"""What `rlm processes` prints."""

from __future__ import annotations

import pytest

from rlm.cli.host.processes import age_text


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (0, "0 s"),
        (999, "0 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_199_999, "119 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 days"),
    ],
)
def test_age_when_shown_then_is_in_its_largest_unit(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text
