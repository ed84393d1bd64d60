"""Compares a reader's records from the store with the true log of the brokers.

The lookup, the opening of segments and the choice of batches are those of `rlm`. The reader reads
the records that the brokers have deleted; the brokers have the others.
"""

from __future__ import annotations

from rlm.remote_read.reader import RemoteLogReader
from rlmm.lookup import Absence, NotStored, locate, log_start_offset
from rsm.read.segment_scan import ScanSettings
from rsm.segment.batches.batch import scan_batches
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.replica import Replica, batch_header
from tests.simulation.world import SimulatedWorld


class ReaderView:
    """Reads the partitions of a world."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._reader = RemoteLogReader(
            world.metadata, world.storage, SynchronousExecutor(), ScanSettings(ahead_count=0)
        )

    def difference(self) -> str | None:
        """Return how the reader's view differs from the truth; None if it does not."""
        found = (self._compare(tip, self._world.leader(tip)) for tip in self._world.defined_tips())
        return next((difference for difference in found if difference is not None), None)

    def _compare(self, tip: TopicIdPartition, leader: Replica) -> str | None:
        start_offset = log_start_offset(self._world.metadata, tip, leader.log_start_offset)
        if start_offset >= leader.log_start_offset:
            return None
        offsets = OffsetRange(start_offset=start_offset, end_offset=leader.log_start_offset)
        try:
            read = self._read(tip, offsets)
        except TieredStorageError as error:
            if self._world.away:
                return None  # the reader waits for the taken object
            if self._world.unrecorded():
                return None  # a hole that nobody has noticed yet
            return f"{tip}: {offsets} cannot be read: {error}"
        written = [
            batch
            for batch in _overlapping(leader, offsets)
            if batch in read or not self._is_taken(tip, batch)
        ]
        if read == written:
            return None
        return f"{tip}: {offsets} reads as {_bases(read)}, written were {_bases(written)}"

    def _is_taken(self, tip: TopicIdPartition, batch: bytes) -> bool:
        """Return whether somebody gave up or deleted a part of the range, which may be in a gap."""
        header = batch_header(batch)
        offsets = OffsetRange(start_offset=header.base_offset, end_offset=header.next_offset)
        gaps = [gap.offsets for gap in self._world.state(tip).gaps]
        shed = self._world.audit.shed.get(tip, ())
        taken = self._world.taken.get(tip, ())
        return any(map(offsets.overlaps, taken)) or (
            any(map(offsets.overlaps, shed)) and any(map(offsets.overlaps, gaps))
        )

    def _read(self, tip: TopicIdPartition, offsets: OffsetRange) -> list[bytes]:
        read: list[bytes] = []
        offset = offsets.start_offset
        while offset < offsets.end_offset:
            scan = self._reader.scan(tip, offset, offsets.end_offset)
            read.extend(
                bytes(run.data[position : position + header.length_bytes])
                for run in scan
                for position, header in scan_batches(run.data)
            )
            if scan.next_offset >= offsets.end_offset:
                break
            found = locate(self._world.metadata, tip, scan.next_offset)
            if not isinstance(found, NotStored) or found.until_offset is None:
                break
            if found.absence is not Absence.RECORDED_GAP:
                raise found.error()
            offset = found.until_offset
        return [batch for batch in read if batch_header(batch).base_offset < offsets.end_offset]


def _overlapping(replica: Replica, offsets: OffsetRange) -> list[bytes]:
    """Return all batches of the history with an offset of a range."""
    return [
        batch
        for file in replica.files
        for batch in file.batches
        if batch_header(batch).base_offset < offsets.end_offset
        and batch_header(batch).next_offset > offsets.start_offset
    ]


def _bases(batches: list[bytes]) -> list[int]:
    return [batch_header(batch).base_offset for batch in batches]
