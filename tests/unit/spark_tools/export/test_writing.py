"""The outcome that a Spark job of an export must have for its ranges to count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.export.writing import require_named
from tests.unit.spark_tools.export.test_ranges import written


def test_outcomes_when_records_are_in_no_file_then_a_shared_directory_is_asked_for() -> None:
    whole = written(0, 10)
    require_named([whole, replace(whole, records_count=0, names=())], "_attempts/1")

    with pytest.raises(InvalidConfigError, match="that all hosts share"):
        require_named([whole, replace(whole, names=())], "_attempts/1")
