"""Copies of which none runs."""

from __future__ import annotations


class NoCopies:
    """The copies of a manager that copies nothing, as gauges read them."""

    def oldest_age_ms(self) -> int:
        return 0

    def hanging_count(self) -> int:
        return 0

    def open_count(self) -> int:
        return 0
