from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.reading.admission import TriggerLimits
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
        {"SUBSCRIBE": "orders", "fromtimestamp": "5", "Columns": "TIMESTAMPTYPE, key"}
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
        ({}, "subscribe, subscribePattern, assign"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "subscribe, subscribePattern, assign"),
        ({"subscribe": "a", "subscribePattern": "a.*"}, "subscribe, subscribePattern, assign"),
        ({"subscribePattern": "("}, "subscribePattern"),
        ({"subscribe": "a,,b"}, "subscribe"),
        ({"assign": "[0]"}, "assign"),
        ({"assign": '{"a":[]}'}, "assign"),
        ({"assign": '{"a":[-1]}'}, "assign"),
        ({"assign": "{"}, "assign"),
        ({"subscribe": "a", "startingOffsets": "5"}, "startingOffsets"),
        ({"subscribe": "a", "startingOffsets": '{"a":7}'}, "startingOffsets"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, "startingOffsets"),
        ({"subscribe": "a", "endingOffsets": '{"a":{"x":3}}'}, "endingOffsets"),
        ({"subscribe": "a", "untilTimestamp": "yesterday"}, "untilTimestamp"),
        ({"subscribe": "a", "columns": "key,colour"}, "columns"),
        ({"subscribe": "a", "columns": "key,key"}, "columns"),
        ({"subscribe": "a", "isolation": "serializable"}, "isolation"),
        ({"subscribe": "a", "mode": "lenient"}, "mode"),
        ({"subscribe": "a", "mode": "failfast", "failOnDataLoss": "false"}, "contradict"),
        ({"subscribe": "a", "mode": "permissive", "failOnDataLoss": "true"}, "contradict"),
        ({"subscribe": "a", "failOnDataLoss": "no"}, "failOnDataLoss"),
        ({"subscribe": "a", "includeHeaders": "1"}, "includeHeaders"),
        ({"subscribe": "a", "includeHeaders": "false", "columns": "headers"}, "contradict"),
        ({"subscribe": "a", "client.isolation.level": "read_committed"}, "instead=isolation"),
        ({"subscribe": "a", "minPartitions": "0"}, "minPartitions"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"subscribe": "a", "maxBytesPerTrigger": "1g"}, "maxBytesPerTrigger"),
        ({"subscribe": "a", "leaseMs": "86400001"}, "leaseMs"),
        ({"subscribe": "a", "startingOffset": "earliest"}, "did_you_mean=startingOffsets"),
        ({"subscribe": "a", "startingTimestamp": "5"}, "instead=fromTimestamp and untilTimestamp"),
        ({"subscribe": "a", "minOffsetsPerTrigger": "5"}, "instead=maxOffsetsPerTrigger"),
    ],
)
def test_options_when_wrong_then_an_error_names_the_option(
    options: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        ReadOptions.of(options)


def test_options_when_the_end_is_latest_then_reading_continues_at_the_broker() -> None:
    def continued(ending: str) -> list[bool]:
        options = ReadOptions.of({"subscribe": "orders", "endingOffsets": ending})
        return [options.continues("orders", each) for each in range(3)]

    assert continued('{"orders":{"0":-1,"1":7}}') == [True, False, False]
    assert continued("latest") == [True, True, True]
    assert continued("stored") == [False, False, False]


def test_options_when_an_unknown_one_is_like_none_then_none_is_suggested() -> None:
    with pytest.raises(InvalidConfigError) as raised:
        ReadOptions.of({"subscribe": "a", "header": "true"})

    assert raised.value.context["option"] == "header"
    assert "did_you_mean" not in raised.value.context


@pytest.mark.parametrize(
    "given", [{"subscribe": "orders,a b"}, {"assign": '{"a b":[0]}'}], ids=["subscribe", "assign"]
)
def test_options_when_a_topics_name_is_invalid_then_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidConfigError, match=r"topic's name is invalid \(found=a b"):
        ReadOptions.of(given)


def test_options_when_a_pattern_is_given_then_no_topic_is_named() -> None:
    options = ReadOptions.of({"subscribePattern": "order.*"})

    assert options.pattern is not None
    assert options.pattern.fullmatch("orders")
    assert options.topics == ()
    assert options.chooses("orders", 7)


def test_options_when_headers_are_not_wanted_then_that_column_is_not_there() -> None:
    options = ReadOptions.of({"subscribe": "a", "includeHeaders": "FALSE"})

    assert options.columns == tuple(name for name in COLUMNS if name != "headers")
    assert ReadOptions.of({"subscribe": "a", "includeHeaders": "true"}).columns == COLUMNS


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, Mode.FAILFAST),
        ({"failOnDataLoss": "true"}, Mode.FAILFAST),
        ({"failOnDataLoss": "false"}, Mode.DROPMALFORMED),
        ({"failOnDataLoss": "false", "mode": "permissive"}, Mode.PERMISSIVE),
    ],
)
def test_options_when_data_loss_is_accepted_then_what_is_lost_is_left_out(
    given: dict[str, str], mode: Mode
) -> None:
    assert ReadOptions.of({"subscribe": "a", **given}).mode is mode


def test_options_when_micro_batches_are_limited_then_by_either() -> None:
    given = {"subscribe": "a", "maxOffsetsPerTrigger": "10", "maxBytesPerTrigger": "1000"}

    assert ReadOptions.of(given).limits == TriggerLimits(max_offsets=10, max_bytes=1000)
    assert not ReadOptions.of({"subscribe": "a"}).limits.is_limited
