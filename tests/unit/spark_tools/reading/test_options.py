from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.reading.options import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    STORED_OFFSET,
    Mode,
    ReadOptions,
)
from spark_tools.rows.schema import COLUMNS, UNREADABLE


def test_options_when_only_a_topic_is_given_then_all_of_it() -> None:
    options = ReadOptions.of({"subscribe": "orders, payments", "rsm.config.key.prefix": "x"})

    assert options.topics == ("orders", "payments")
    assert options.columns == COLUMNS
    assert options.chooses("orders", 7)
    assert options.starting.of("orders", 7) == EARLIEST_OFFSET
    assert options.ending.of("orders", 7) == STORED_OFFSET


def test_options_when_names_have_any_case_then_as_spark_takes_them() -> None:
    options = ReadOptions.of(
        {"SUBSCRIBE": "orders", "startingtimestamp": "5", "Columns": "TIMESTAMPTYPE, key"}
    )

    assert options.from_ms == 5
    assert options.columns == ("timestampType", "key")


def test_options_when_offsets_are_named_then_of_those_partitions() -> None:
    options = ReadOptions.of(
        {
            "assign": '{"orders":[0,2]}',
            "startingOffsets": '{"orders":{"0":17}}',
            "endingOffsets": '{"orders":{"2":-1,"0":40}}',
        }
    )

    assert [options.chooses("orders", partition) for partition in range(3)] == [True, False, True]
    assert [options.starting.of("orders", each) for each in (0, 2)] == [17, EARLIEST_OFFSET]
    assert [options.ending.of("orders", each) for each in (0, 2)] == [40, LATEST_OFFSET]


def test_options_when_permissive_then_a_column_lists_what_is_unreadable() -> None:
    options = ReadOptions.of({"subscribe": "orders", "mode": "PERMISSIVE", "columns": "key"})

    assert options.mode is Mode.PERMISSIVE
    assert options.columns == ("key", UNREADABLE)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "subscribe and assign"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "subscribe and assign"),
        ({"subscribe": "a,,b"}, "subscribe"),
        ({"assign": "[0]"}, "assign"),
        ({"assign": '{"a":[]}'}, "assign"),
        ({"assign": '{"a":[-1]}'}, "assign"),
        ({"assign": "{"}, "assign"),
        ({"subscribe": "a", "startingOffsets": "5"}, "startingOffsets"),
        ({"subscribe": "a", "startingOffsets": '{"a":7}'}, "startingOffsets"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, "startingOffsets"),
        ({"subscribe": "a", "endingOffsets": '{"a":{"x":3}}'}, "endingOffsets"),
        ({"subscribe": "a", "endingTimestamp": "yesterday"}, "endingTimestamp"),
        ({"subscribe": "a", "columns": "key,colour"}, "columns"),
        ({"subscribe": "a", "columns": "key,key"}, "columns"),
        ({"subscribe": "a", "isolation": "serializable"}, "isolation"),
        ({"subscribe": "a", "mode": "dropmalformed"}, "mode"),
        ({"subscribe": "a", "leaseMs": "86400001"}, "leaseMs"),
        ({"subscribe": "a", "startingOffset": "earliest"}, "nearest=startingOffsets"),
    ],
)
def test_options_when_wrong_then_an_error_names_the_option(
    options: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        ReadOptions.of(options)


def test_options_when_the_end_is_latest_then_reading_goes_on_at_the_broker() -> None:
    def continued(ending: str) -> list[bool]:
        options = ReadOptions.of({"subscribe": "orders", "endingOffsets": ending})
        return [options.continues("orders", each) for each in range(3)]

    assert continued('{"orders":{"0":-1,"1":7}}') == [True, False, False]
    assert continued("latest") == [True, True, True]
    assert continued("stored") == [False, False, False]
