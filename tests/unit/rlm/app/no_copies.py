"""Copies of which none runs."""

from __future__ import annotations


class NoCopies:
    """What gauges show of copies while there are none."""

    def oldest_age_ms(self) -> int:
        return 0

    def hanging_count(self) -> int:
        return 0
