from __future__ import annotations

import pytest

from rlm.cli.invocation.log_bounds import Bound, PartitionName
from rsm.segment.errors import InvalidConfigError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("orders", PartitionName(topic="orders")),
        ("orders:0", PartitionName(topic="orders", partition=0)),
        ("a.b-c_d:12", PartitionName(topic="a.b-c_d", partition=12)),
    ],
)
def test_parse_partition_when_well_formed_then_its_parts(text: str, name: PartitionName) -> None:
    assert PartitionName.parse(text) == name


@pytest.mark.parametrize("text", ["", ":", ":1", "orders:", "orders:x", "orders:-1", "orders:1:2"])
def test_parse_partition_when_malformed_then_says_what_it_should_be(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="TOPIC:PARTITION"):
        PartitionName.parse(text)


@pytest.mark.parametrize("text", ["a b", "orders!", "a/b:0", ".", "..", "o" * 250])
def test_parse_partition_when_kafka_permits_no_such_topic_then_says_what_it_permits(
    text: str,
) -> None:
    with pytest.raises(InvalidConfigError, match="249 letters"):
        PartitionName.parse(text)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0", Bound(offset=0)),
        ("9223372036854775807", Bound(offset=2**63 - 1)),
        ("@1700000000000", Bound(timestamp_ms=1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", Bound(timestamp_ms=1_700_000_000_000)),
        ("2023-11-14T22:13:20.5", Bound(timestamp_ms=1_700_000_000_500)),
        ("2023-11-15T00:13:20+02:00", Bound(timestamp_ms=1_700_000_000_000)),
        ("2023-11-14", Bound(timestamp_ms=1_699_920_000_000)),
    ],
)
def test_parse_bound_when_offset_or_time_then_that(text: str, bound: Bound) -> None:
    assert Bound.parse(text, option="--from") == bound


@pytest.mark.parametrize("text", ["", "-1", "yesterday", "@", "@-5", "1e3", "2023-13-01"])
def test_parse_bound_when_neither_then_names_the_option(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="--from"):
        Bound.parse(text, option="--from")
