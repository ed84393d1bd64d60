"""Removed objects of stored segments are copied again, restored, or given up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

_KEEP_LOCAL = -1


class Reader:
    """A consumer that reads partition 0 from its beginning, and continues where it stopped."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.offsets: list[int] = []

    def wait_for(self, end_offset: int) -> None:
        """Read until the reader has received or skipped everything below an offset."""
        wait_until(
            lambda: self._has_come_to(end_offset),
            describe=lambda: f"read up to {end_offset}: {self.offsets[-1:]}",
        )

    def wait_stalled(self, log: TieredLog, metadata: RemoteLogMetadataManager) -> None:
        """Read until an anomaly is on record."""
        wait_until(
            lambda: self._meets(bool(metadata.partition_state(log.partition).anomalies)),
            describe="an anomaly on record",
        )

    def _meets(self, is_stalled: bool) -> bool:
        self._poll()
        return is_stalled

    def _has_come_to(self, end_offset: int) -> bool:
        self._poll()
        return bool(self.offsets) and self.offsets[-1] + 1 >= end_offset

    def _poll(self) -> None:
        for message in self._consumer.consume(500, timeout=0.2):
            assert message.error() is None, message.error()
            self.offsets.append(message.offset())  # type: ignore[arg-type]  # it has no error


@contextmanager
def _reading(bootstrap: str, topic: str) -> Iterator[Reader]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "stalled",
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        yield Reader(consumer)


def _take(log: TieredLog, segment: RemoteLogSegmentMetadata) -> Path:
    """Move a segment's `.log` object away; return its new path."""
    path = log.object_path(segment, ".log")
    return path.rename(path.with_suffix(".away"))


def test_objects_when_taken_away_then_copied_again_given_back_or_given_up(
    host: BrokerHost, log: TieredLog
) -> None:
    """The scrub finds the damage.

    The manager repairs what the broker has; the operator gives up the rest.
    """
    (port,) = free_ports(1)
    gateway = f"127.0.0.1:{port}"
    host.set(**{"gateway.listener": gateway, "remote.scrub.interval.ms": "1000"})
    log.produce(4)
    with host.metadata() as metadata, host.running():
        host.wait_ready()
        log.set_policy(metadata, local_retention_ms=_KEEP_LOCAL)
        wait_until(lambda: len(log.finished(metadata)) == 4, describe="four segments are stored")

        damaged = log.finished(metadata)[1]
        _take(log, damaged)
        _wait_copied_again(log, metadata, damaged)
        read_from_broker = read_all(gateway, log.topic)

        log.set_policy(metadata)
        log.wait_tiered(metadata)
        first, second, third, *_ = log.finished(metadata)
        restored, _ = _take(log, first), _take(log, second)
        with _reading(gateway, log.topic) as reader:
            reader.wait_stalled(log, metadata)
            stalled_at = len(reader.offsets)
            restored.rename(log.object_path(first, ".log"))
            reader.wait_for(first.offsets.end_offset)
            reader.wait_stalled(log, metadata)

            shown = json.loads(host.rlm(*_resolve(log, second), "--dry-run", "--json"))
            unchanged = metadata.partition_state(log.partition).gaps
            accepted = host.rlm(*_resolve(log, second))
            reader.wait_for(third.offsets.end_offset)
        # Unless a reader clears it first, the manager checks a damaged object again after a minute.
        wait_until(
            lambda: not metadata.partition_state(log.partition).anomalies,
            90.0,
            "no anomaly on record",
        )

    assert read_from_broker == list(range(len(read_from_broker)))
    assert stalled_at == 0
    assert (shown["lost"], shown["accepted"], unchanged) == (
        [
            {
                "start_offset": second.offsets.start_offset,
                "end_offset": second.offsets.end_offset,
            }
        ],
        False,
        (),
    )
    assert "accepted: " in accepted
    lost = range(second.offsets.start_offset, second.offsets.end_offset)
    assert reader.offsets == [o for o in range(reader.offsets[-1] + 1) if o not in lost]


def test_object_when_a_bit_is_flipped_then_reported_and_the_reader_continues_when_it_is_repaired(
    host: BrokerHost, log: TieredLog
) -> None:
    """The reader gets only the written bytes, and only retriable errors."""
    (port,) = free_ports(1)
    gateway = f"127.0.0.1:{port}"
    host.set(**{"gateway.listener": gateway})
    log.produce(4)
    with host.metadata() as metadata, host.running():
        host.wait_ready()
        log.set_policy(metadata)
        log.wait_tiered(metadata)
        first, second, *_ = log.finished(metadata)
        whole = _flip_a_bit(log.object_path(second, ".log"))
        with _reading(gateway, log.topic) as reader:
            reader.wait_stalled(log, metadata)
            stalled_at = len(reader.offsets)
            (anomaly,) = metadata.partition_state(log.partition).anomalies
            log.object_path(second, ".log").write_bytes(whole)
            reader.wait_for(second.offsets.end_offset)

    assert anomaly.kind is AnomalyKind.CORRUPT
    assert anomaly.segment == second.segment_id.id
    assert first.offsets.end_offset <= stalled_at < second.offsets.end_offset
    assert reader.offsets == list(range(len(reader.offsets)))


def _flip_a_bit(path: Path) -> bytes:
    """Flip a bit in the middle of a file; return the previous content."""
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    return whole


def _resolve(log: TieredLog, segment: RemoteLogSegmentMetadata) -> tuple[str, ...]:
    segment_id = id_to_text(segment.segment_id.id)
    return ("topic", "resolve", f"{log.topic}:0", "--lost-segment", segment_id, "--yes")


def _wait_copied_again(
    log: TieredLog, metadata: RemoteLogMetadataManager, damaged: RemoteLogSegmentMetadata
) -> None:
    """Wait until the damaged segment is deleted; its new copy is finished before that."""
    over = (None, SegmentState.DELETE_SEGMENT_FINISHED)
    wait_until(
        lambda: _state_of(metadata, damaged) in over,
        describe=lambda: f"copied again: {_state_of(metadata, damaged)}",
    )
    again = [each for each in log.finished(metadata) if each.offsets == damaged.offsets]
    assert [each.segment_id == damaged.segment_id for each in again] == [False]


def _state_of(
    metadata: RemoteLogMetadataManager, segment: RemoteLogSegmentMetadata
) -> SegmentState | None:
    record = metadata.segment(segment.segment_id)
    return None if record is None else record.metadata.state
