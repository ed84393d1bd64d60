"""The copies of a manager that copies nothing, for tests of gauges."""

from __future__ import annotations


class NoCopies:
    """Has no open and no hanging copy."""

    def oldest_age_ms(self) -> int:
        return 0

    def hanging_count(self) -> int:
        return 0

    def open_count(self) -> int:
        return 0
