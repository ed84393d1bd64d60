from __future__ import annotations

import pytest

from rlmm.topic.memory import MemoryLog, MemoryTopic
from tests.contract.event_topic_contract import PARTITION_COUNT, EventTopicContract, OpenTopic
from tests.log_dir_builder import ManualClock


class TestMemoryTopic(EventTopicContract):
    @pytest.fixture
    def open_topic(self) -> OpenTopic:
        log = MemoryLog(ManualClock(), partition_count=PARTITION_COUNT)
        return lambda: MemoryTopic(log)

    @pytest.fixture
    def missing_topic(self) -> MemoryTopic:
        log = MemoryLog(ManualClock())
        log.delete()
        return MemoryTopic(log)


def test_log_when_compacted_then_only_the_last_record_of_a_key_is_left() -> None:
    log = MemoryLog(ManualClock())
    for key in (b"a", b"b", b"a", b"a"):
        log.append(0, key, b"value")

    log.compact(0, 3)

    assert [record.offset for record in log.records(0)] == [1, 2, 3]


def test_log_when_tombstones_are_dropped_then_offsets_are_not_used_again() -> None:
    log = MemoryLog(ManualClock())
    log.append(0, b"a", b"value")
    log.append(0, b"a", None)
    log.compact(0, 2, drop_tombstones=True)

    assert log.append(0, b"b", b"value").offset == 2
