from __future__ import annotations

import logging
import sys

from hypothesis import given
from hypothesis import strategies as st

from rlm.worker.log_lines import KafkaClientFilter, KeyValueFormatter


def _record(message: str, **fields: object) -> logging.LogRecord:
    record = logging.makeLogRecord(
        {"name": "rlm.x", "levelname": "INFO", "msg": message, "created": 0.0}
    )
    vars(record).update(fields)
    return record


def test_format_when_fields_given_then_they_follow_the_message() -> None:
    line = KeyValueFormatter().format(_record("segment copied", topic="orders", reason="a b"))

    assert line == '1970-01-01T00:00:00.000Z INFO rlm.x segment copied topic=orders reason="a b"'


@given(message=st.text(), value=st.text())
def test_format_when_text_has_line_ends_then_is_one_line(message: str, value: str) -> None:
    line = KeyValueFormatter().format(_record(message.replace("%", ""), value=value))

    assert "\n" not in line


def test_format_when_there_is_a_stack_trace_then_is_one_line() -> None:
    record = _record("failed")
    try:
        int("x")
    except ValueError:
        record.exc_info = sys.exc_info()

    line = KeyValueFormatter().format(record)

    assert "\n" not in line
    assert "ValueError: invalid literal" in line


def test_filter_when_kafka_client_repeats_itself_then_passes_once_per_interval() -> None:
    kept = KafkaClientFilter(interval_s=60.0)
    seconds = [0.0, 0.05, 59.0, 60.0, 61.0]

    passed = [
        kept.filter(
            _record(f"FAIL connection {second}", name="librdkafka.consumer", created=second)
        )
        for second in seconds
    ]

    assert passed == [True, False, False, True, False]


def test_filter_when_we_repeat_ourselves_then_passes_all() -> None:
    kept = KafkaClientFilter()

    assert all(kept.filter(_record("copied segment")) for _ in range(3))
