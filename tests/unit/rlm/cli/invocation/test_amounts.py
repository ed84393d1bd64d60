"""Durations and sizes as text for people."""

from __future__ import annotations

import pytest

from rlm.cli.invocation.amounts import age_text, size_text


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (0, "0 s"),
        (1, "1 ms"),
        (999, "999 ms"),
        (1_999, "1999 ms"),
        (2_000, "2 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_199_999, "119 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 days"),
    ],
)
def test_age_when_shown_then_is_in_its_largest_unit(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_048_575, "1.0 MiB"),
        (1_288_490_189, "1.2 GiB"),
        (102_300, "99.9 KiB"),
        (102_399, "100 KiB"),
        (512 << 20, "512 MiB"),
        ((1 << 30) - 1, "1.0 GiB"),
        (1 << 63, "8192 PiB"),
    ],
)
def test_size_when_shown_then_is_in_its_largest_unit(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text
    assert len(text) <= 8
