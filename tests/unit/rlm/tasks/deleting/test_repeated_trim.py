"""A trim whose record exists already: the metadata must be read to its end all the same."""

from __future__ import annotations

from rsm.segment.errors import RetriableError
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import Process
from tests.fakes.world import TIP, World
from tests.metadata_builder import anomaly, anomaly_reported

DELETE_RECORDS = "delete_records"


class StallingMetadata(FreshMetadata):
    """Answers from what it has read, if `is_stalled`; reads only for a call that waits."""

    is_stalled = False

    def refresh(self) -> None:
        if not self.is_stalled:
            super().refresh()


class StallingProcess(Process):
    metadata_type = StallingMetadata


def test_trim_when_recorded_before_and_an_anomaly_is_not_read_yet_then_given_up() -> None:
    """R2: the local copy may be the only one that is whole."""
    world = World()
    world.segments(3)
    process = world.start(process_type=StallingProcess)
    process.effects.fail(DELETE_RECORDS, RetriableError("not now"))
    world.cycle()
    world.cycle()
    assert world.state().trims
    damaged = world.records()[0].metadata
    metadata = process.ports.metadata
    assert isinstance(metadata, StallingMetadata)

    def stall() -> None:
        metadata.is_stalled = True
        found = anomaly(damaged.segment_id.id.int, key=damaged.objects[0].key)
        assert world.metadata.publish(anomaly_reported(found, partition=TIP)).accepted

    process.effects.before("offsets", stall)

    world.cycle()

    assert DELETE_RECORDS not in process.effects.performed
    assert world.leader().log_start_offset == 0
