"""Leases that are renewed until they are released, and the records written meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from uuid import UUID

import pytest

from rlmm.codec import decode
from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.topic.event_topic import EventTopic, PublishedPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import RetriableError
from rsm.segment.ranges import OffsetRange
from rsm.system_clock import SystemClock
from spark_tools.leases.renewal import LeaseRenewal
from spark_tools.leases.topic import LeaseTopic
from tests.metadata_builder import ORDERS
from tests.services.waiting import wait_until
from tests.thread_starts import no_thread_starts

TOPIC = LeaseTopic(client={"sasl.password": "secret"}, name="metadata", partition_count=1)


def lease(
    *, duration_ms: int, offsets: tuple[int, int] = (0, 10), number: int = 7
) -> ReadLeaseTaken:
    return ReadLeaseTaken(
        event_id=UUID(int=1),
        lease_id=UUID(int=number),
        topic_id_partition=ORDERS,
        offsets=OffsetRange(start_offset=offsets[0], end_offset=offsets[1]),
        duration_ms=duration_ms,
        holder="spark:a",
    )


class RefusingTopic(MemoryTopic):
    """The topic of a cluster that is unreachable while `refuses`."""

    refuses = False
    refused_count = 0
    is_closed = False

    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        if self.refuses:
            self.refused_count += 1
            raise RetriableError("no broker")
        return super().publish(partition, key, value)

    def close(self) -> None:
        self.is_closed = True


class UnclosableTopic(MemoryTopic):
    """A topic whose client fails when it is closed."""

    def close(self) -> None:
        raise RuntimeError("not closed")


class Written:
    def __init__(self) -> None:
        self.log = MemoryLog(SystemClock())
        self.topic = RefusingTopic(self.log)
        self.opened = 0

    def open(self, _topic: LeaseTopic) -> EventTopic:
        self.opened += 1
        return self.topic

    def leases(self) -> list[ReadLeaseTaken | None]:
        """Return the written leases in order; None is the end of one."""
        found: list[ReadLeaseTaken | None] = []
        for record in self.log.records(0):
            event = None if record.value is None else decode(record.key, record.value)
            assert event is None or isinstance(event, ReadLeaseTaken)
            found.append(event)
        return found


@contextmanager
def renewal(written: Written) -> Iterator[LeaseRenewal]:
    with closing(LeaseRenewal("spark:a", opened=written.open)) as made:
        yield made


def test_lease_when_a_third_of_it_has_passed_then_written_again_with_the_same_id() -> None:
    written = Written()
    with renewal(written) as made:
        made.hold(TOPIC, lease(duration_ms=600))
        wait_until(lambda: len(written.leases()) >= 2, describe="two leases")

        first, second = written.leases()[:2]
        assert first is not None
        assert second is not None
        assert first.lease_id == second.lease_id == UUID(int=7)
        assert len({first.event_id, second.event_id, UUID(int=1)}) == 3
        assert first.offsets == lease(duration_ms=600).offsets
    assert written.opened == 1


def test_lease_when_taken_again_then_the_last_one_is_renewed() -> None:
    written = Written()
    with renewal(written) as made:
        made.hold(TOPIC, lease(duration_ms=60_000))
        made.hold(TOPIC, lease(duration_ms=600, offsets=(10, 20)))
        wait_until(written.leases, describe="a lease")

    assert [each.offsets.start_offset for each in written.leases() if each] == [10]
    assert written.leases()[-1] is None
    assert len(written.leases()) == 2


@pytest.mark.parametrize("end", [LeaseRenewal.release, LeaseRenewal.close])
def test_leases_when_released_then_ended_and_not_renewed(
    end: Callable[[LeaseRenewal], None],
) -> None:
    written = Written()
    with renewal(written) as made:
        made.hold(TOPIC, lease(duration_ms=60_000))
        made.hold(TOPIC, lease(duration_ms=60_000, number=8))

        end(made)

        assert written.leases() == [None, None]
        assert made.count == 0
    assert written.leases() == [None, None]


def test_lease_when_the_cluster_cannot_be_reached_then_renewed_once_it_can() -> None:
    written = Written()
    written.topic.refuses = True
    with renewal(written) as made:
        made.hold(TOPIC, lease(duration_ms=600))
        wait_until(lambda: written.topic.refused_count > 1, describe="a second attempt")
        assert written.leases() == []
        written.topic.refuses = False
        wait_until(written.leases, describe="a lease")


def test_leases_when_they_cannot_be_released_then_left_to_expire() -> None:
    written = Written()
    with renewal(written) as made:
        made.hold(TOPIC, lease(duration_ms=60_000))
        written.topic.refuses = True
        made.release()
        assert made.count == 0


def test_leases_when_one_cluster_cannot_be_reached_then_those_of_another_are_renewed() -> None:
    away, there = Written(), Written()
    away.topic.refuses = True
    other = replace(TOPIC, name="other")
    opened = {TOPIC.name: away.topic, other.name: there.topic}
    with closing(LeaseRenewal("spark:a", opened=lambda topic: opened[topic.name])) as made:
        made.hold(TOPIC, lease(duration_ms=600))
        made.hold(other, lease(duration_ms=600))
        wait_until(lambda: len(there.leases()) >= 2, describe="two leases")
        assert away.leases() == []
    assert there.leases()[-1] is None


def test_leases_when_a_client_cannot_be_made_then_those_of_another_are_renewed_and_released(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The first lease's client has no file of authorities, so librdkafka rejects it."""
    written = Written()
    tls = {"security.protocol": "ssl", "ssl.ca.location": str(tmp_path / "missing.pem")}
    unusable = LeaseTopic(client=tls, name="unusable", partition_count=1)

    def opened(topic: LeaseTopic) -> EventTopic:
        return topic.open() if topic is unusable else written.topic

    with closing(LeaseRenewal("spark:a", opened=opened)) as made:
        made.hold(unusable, lease(duration_ms=600))
        made.hold(TOPIC, lease(duration_ms=600))
        wait_until(lambda: len(written.leases()) >= 3, describe="three leases")
        assert None not in written.leases()

    assert written.leases()[-1] is None
    assert written.topic.is_closed
    logged = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert logged == ["cannot renew a read lease", "cannot release read leases"]
    assert "ssl.ca.location failed" in caplog.text
    assert "Traceback" not in caplog.text


def test_leases_when_a_topic_cannot_be_closed_then_the_others_are() -> None:
    written = Written()
    other = replace(TOPIC, name="other")
    opened = {TOPIC.name: UnclosableTopic(written.log), other.name: written.topic}
    made = LeaseRenewal("spark:a", opened=lambda topic: opened[topic.name])
    made.hold(other, lease(duration_ms=60_000))
    made.hold(TOPIC, lease(duration_ms=60_000))

    with pytest.raises(RuntimeError, match="not closed"):
        made.close()

    assert written.leases() == [None, None]
    assert written.topic.is_closed
    made.close()


def test_leases_when_no_thread_can_be_started_then_the_next_lease_starts_it() -> None:
    written = Written()
    with renewal(written) as made:
        with no_thread_starts(), pytest.raises(RuntimeError, match="start new thread"):
            made.hold(TOPIC, lease(duration_ms=600))
        made.hold(TOPIC, lease(duration_ms=600, number=8))

        wait_until(lambda: len(written.leases()) >= 2, describe="both leases")


def test_leases_when_no_thread_could_be_started_then_released_at_the_end() -> None:
    written = Written()
    with renewal(written) as made, no_thread_starts(), pytest.raises(RuntimeError, match="thread"):
        made.hold(TOPIC, lease(duration_ms=60_000))
    assert written.leases() == [None]


def test_leases_when_more_are_being_taken_then_none_is_released() -> None:
    written = Written()
    with renewal(written) as made:
        with made.planning():
            made.hold(TOPIC, lease(duration_ms=60_000))
            made.release()
            assert (written.leases(), made.count) == ([], 1)
        made.release()
        assert (written.leases(), made.count) == ([None], 0)


def test_lease_when_another_plan_widens_it_then_what_was_held_before_is_not_written() -> None:
    """The topic has the wider lease already, and the older one would replace it."""
    written = Written()
    with renewal(written) as made:
        made.hold(TOPIC, lease(duration_ms=3_000))
        since_s = monotonic()
        with made.planning():
            wait_until(lambda: monotonic() > since_s + 1.2, describe="the renewal is due")
            made.hold(TOPIC, lease(duration_ms=3_000, offsets=(0, 100)))
        wait_until(written.leases, describe="a lease")

    first = written.leases()[0]
    assert first is not None
    assert first.offsets.end_offset == 100


def test_topic_when_shown_then_without_the_clients_secrets() -> None:
    assert "secret" not in repr(TOPIC)
