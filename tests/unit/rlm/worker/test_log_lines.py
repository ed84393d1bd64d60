from __future__ import annotations

import logging
import sys

from hypothesis import given
from hypothesis import strategies as st

from rlm.worker.log_lines import KafkaClientFilter, OneLineFormatter
from rsm.segment.log_line import LogLine


def _record(message: object, *, name: str = "rlm.x", created: float = 0.0) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": name, "levelname": "INFO", "msg": message, "created": created}
    )


def test_format_when_fields_given_then_they_follow_the_message() -> None:
    line = OneLineFormatter().format(
        _record(LogLine("copied segment", topic="orders", reason="a b"))
    )

    assert line == '1970-01-01T00:00:00.000Z INFO rlm.x copied segment topic=orders reason="a b"'


def test_format_when_a_library_logs_with_extra_then_it_follows_the_text() -> None:
    record = _record("published")
    vars(record).update(event="PolicySet")

    line = OneLineFormatter().format(record)

    assert line.endswith("rlm.x published event=PolicySet")


@given(message=st.text(), value=st.text())
def test_format_when_text_has_line_ends_then_is_one_line(message: str, value: str) -> None:
    line = OneLineFormatter().format(_record(LogLine(message, value=value)))

    assert "\n" not in line


def test_format_when_there_is_a_stack_trace_then_is_one_line() -> None:
    record = _record("failed")
    try:
        int("x")
    except ValueError:
        record.exc_info = sys.exc_info()

    line = OneLineFormatter().format(record)

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


def test_filter_when_rlm_repeats_itself_then_passes_all() -> None:
    kept = KafkaClientFilter()

    assert all(kept.filter(_record("copied segment")) for _ in range(3))
