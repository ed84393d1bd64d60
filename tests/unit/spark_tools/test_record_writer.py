"""Settings that the Kafka client refuses before it connects, and writes without an answer."""

from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError, RetriableError
from spark_tools.cluster_topics import find_partitions
from spark_tools.record_writer import OutgoingRecord, require_producer, write_records

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def test_write_when_a_record_is_refused_then_an_error_names_topic_and_reason() -> None:
    large = OutgoingRecord(topic="letters", key=None, value=bytes(2_000_000))

    with pytest.raises(RetriableError, match=r"size too large.*letters"):
        write_records(NOBODY, [large], timeout_ms=0)


def test_write_when_nobody_acknowledges_in_time_then_an_error() -> None:
    """Scenario 74: a record without acknowledgement does not count as written."""
    record = OutgoingRecord(topic="letters", key=b"key", value=b"value")

    with pytest.raises(RetriableError, match="cannot write all records"):
        write_records(NOBODY, [record], timeout_ms=10)


@pytest.mark.parametrize(
    ("key", "value"), [("max.in.flight", "10"), ("retries", "0"), ("bogus", "1")]
)
def test_write_when_the_producer_is_configured_wrong_then_an_error_of_rlm(
    key: str, value: str
) -> None:
    """Only a producer refuses some of these settings."""
    client = {**NOBODY, key: value}

    with pytest.raises(InvalidConfigError, match=key):
        write_records(client, [], timeout_ms=10)
    with pytest.raises(InvalidConfigError, match=key):
        require_producer(client)


@pytest.mark.parametrize(
    ("key", "value"), [("bogus", "1"), ("security.protocol", "carrier-pigeon")]
)
def test_find_when_the_client_is_configured_wrong_then_the_key_is_named(
    key: str, value: str
) -> None:
    with pytest.raises(InvalidConfigError, match=key):
        find_partitions({**NOBODY, key: value}, ["orders"], timeout_ms=10)
