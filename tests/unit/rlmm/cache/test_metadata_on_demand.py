from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context
from threading import Barrier, Thread

import pytest
from hypothesis import given

from rlmm.cache.values import metadata_in
from rlmm.codec import encode
from rlmm.events.segment import SegmentEvent
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.metadata_codec import metadata_on_demand, metadata_to_message
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata, step
from tests.unit.rlmm.strategies import SEGMENT_EVENTS

FIELDS = [each.name for each in fields(RemoteLogSegmentMetadata) if each.init]


def on_demand(metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    """Return metadata just read, without an access to any of its fields."""
    return metadata_on_demand(metadata_to_message(metadata))


@given(SEGMENT_EVENTS)
def test_metadata_when_read_on_demand_then_is_what_was_written(event: SegmentEvent) -> None:
    value = encode(event).value

    assert metadata_in(value) == event.metadata
    assert metadata_in(value, event.metadata.topic_id_partition) == event.metadata
    assert hash(metadata_in(value)) == hash(event.metadata)
    assert repr(metadata_in(value)) == repr(event.metadata)


@pytest.mark.parametrize("name", FIELDS)
def test_field_when_asked_for_alone_then_is_the_same_again(name: str) -> None:
    metadata = segment_metadata(epochs=((3, 0), (5, 60)), state=FINISHED)
    found = on_demand(metadata)

    first = getattr(found, name)

    assert first == getattr(metadata, name)
    assert getattr(found, name) is first


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, replace])
def test_metadata_when_copied_then_is_the_same(
    copied: Callable[[RemoteLogSegmentMetadata], RemoteLogSegmentMetadata],
) -> None:
    metadata = segment_metadata(epochs=((3, 0), (5, 60)))

    assert copied(on_demand(metadata)) == metadata
    assert copied(metadata) == metadata


def test_metadata_when_sent_to_another_process_then_is_the_same() -> None:
    metadata = segment_metadata(epochs=((3, 0), (5, 60)))

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(replace, on_demand(metadata), layout="other").result() == replace(
            metadata, layout="other"
        )


def test_metadata_when_its_topic_has_another_name_than_was_given_then_is_as_written() -> None:
    """The id and the number identify a partition; the topic's name is as the segment has it."""
    metadata = segment_metadata(state=FINISHED)
    value = encode(step(metadata, FINISHED)).value

    found = metadata_in(value, replace(ORDERS, topic="renamed"))

    assert found.topic_id_partition.topic == ORDERS.topic


def test_metadata_when_something_else_is_asked_for_then_has_no_such_attribute() -> None:
    metadata = segment_metadata()

    for found in (metadata, on_demand(metadata)):
        assert not hasattr(found, "no_such_field")


def test_field_when_it_is_corrupt_then_says_so_each_time_and_the_others_are_read() -> None:
    message = metadata_to_message(segment_metadata())
    message.writer.incarnation = b"short"
    found = metadata_on_demand(message)

    for _ in range(2):
        with pytest.raises(CorruptError):
            _ = found.writer
    assert found.layout == "raw"


def test_metadata_when_read_by_several_threads_then_all_read_the_same() -> None:
    metadata = segment_metadata(epochs=((3, 0), (5, 60)))
    found = on_demand(metadata)
    barrier, same = Barrier(4), []

    def read() -> None:
        barrier.wait()
        same.append(found.segment_leader_epochs == metadata.segment_leader_epochs)

    threads = [Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 4
