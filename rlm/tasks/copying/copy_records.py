"""Records the states of copies in the metadata, and discards what a failed copy wrote.

Copies of local segments, streams and merges share this module. When a stream starts, its end is not
known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.policy import topic_policy
from rlmm.events.segment import SegmentEvent
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.errors import FencedError, TieredStorageError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, unwritten_chunks
from rsm.segment.ranges import OffsetRange
from rsm.spi import CopiedSegment, PlannedObjects

_log = logging.getLogger(__name__)

# Kafka has a setting of the same name (KIP-917).
CUSTOM_METADATA_MAX_BYTES = "remote.log.metadata.custom.metadata.max.bytes"
DEFAULT_CUSTOM_METADATA_MAX_BYTES = 128


class CopyRecords:
    """Represents the records of one store's copies. Thread-safe."""

    def __init__(self, ports: Ports, *, custom_metadata_max_bytes: int) -> None:
        self._custom_metadata_max_bytes = custom_metadata_max_bytes
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._witness = ports.witness

    def started(
        self,
        lead: PartitionLead,
        segment_id: UUID,
        offsets: OffsetRange,
        lineage: Lineage,
        *,
        size_bytes: int,
        max_timestamp_ms: int,
        has_transaction_index: bool = False,
        open_most_bytes: int | None = None,
    ) -> RemoteLogSegmentMetadata:
        """Return the metadata of a copy that starts, with its planned objects.

        The metadata of an open segment contains neither the end nor the size; the log of the
        segment has at most `open_most_bytes`. The topic's policy decides the layout. An open
        segment gets another layout if the topic's layout cannot store a stream. Raises
        UnsupportedError if the storage manager does not know the topic's layout or cannot stream.
        """
        own_id = RemoteLogSegmentId(topic_id_partition=lead.topic_id_partition, id=segment_id)
        stored_as = self._planned(own_id, offsets.start_offset, size_bytes, open_most_bytes)
        return RemoteLogSegmentMetadata(
            segment_id=own_id,
            offsets=offsets,
            max_timestamp_ms=max_timestamp_ms,
            segment_size_bytes=size_bytes,
            segment_leader_epochs=lineage.within(offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=lead.writer,
            event_timestamp_ms=self._clock.wall_ms(),
            layout=stored_as.layout,
            objects=stored_as.objects,
            has_transaction_index=has_transaction_index,
            is_open=open_most_bytes is not None,
        )

    def _planned(
        self,
        segment_id: RemoteLogSegmentId,
        base_offset: int,
        size_bytes: int,
        open_most_bytes: int | None,
    ) -> PlannedObjects:
        policy = topic_policy(self._metadata, segment_id.topic_id_partition.topic_id)
        layout = None if policy is None else policy.layout
        if open_most_bytes is not None:
            return self._storage.plan_streamed_objects(
                segment_id, base_offset, most_bytes=open_most_bytes, layout=layout
            )
        if layout is None:
            return self._storage.plan_objects(segment_id, base_offset, size_bytes=size_bytes)
        return self._storage.plan_objects_in(layout, segment_id, base_offset, size_bytes=size_bytes)

    def publish(
        self,
        metadata: RemoteLogSegmentMetadata,
        *,
        copy_timeout_ms: int = 0,
        copy_deadline_ms: int = 0,
    ) -> int:
        """Publish a state of the copy; return the append time of the record.

        Raises FencedError if the metadata refuses it, RetriableError if the result is not known.
        """
        result = self._metadata.publish(
            SegmentEvent(
                event_id=self._new_id(),
                metadata=metadata,
                copy_timeout_ms=copy_timeout_ms,
                copy_deadline_ms=copy_deadline_ms,
            )
        )
        if not result.accepted:
            raise FencedError(
                "cannot record the copy's state: the metadata refuses it",
                state=metadata.state.name,
                segment=metadata.segment_id,
                reason=result.refusal,
            )
        return result.append_time_ms

    def finish(
        self, stored: RemoteLogSegmentMetadata, *, copy_deadline_ms: int
    ) -> RemoteLogSegmentMetadata:
        """Publish that the copy finished.

        If the metadata refuses it, deletes the copy's objects and raises FencedError.
        """
        finished = stored.in_state(
            SegmentState.COPY_SEGMENT_FINISHED, event_timestamp_ms=self._clock.wall_ms()
        )
        with self.discarding(stored, FencedError):
            self.publish(finished, copy_deadline_ms=copy_deadline_ms)
        return finished

    def require_not_stored(
        self,
        started: RemoteLogSegmentMetadata,
        offsets: OffsetRange,
        log_start_offset: int,
        replaces: frozenset[UUID] = frozenset(),
    ) -> None:
        """Raise FencedError if an earlier attempt of this claim stored any of `offsets`.

        That attempt published its end, but this process did not see the result. Call this method
        after the metadata has accepted the started event. Segments below `log_start_offset` and
        segments in `replaces` do not count.
        """
        records = self._metadata.list_remote_log_segments(
            started.topic_id_partition,
            states=(SegmentState.COPY_SEGMENT_FINISHED,),
            from_offset=max(offsets.start_offset, log_start_offset),
        )
        for found in (record.metadata for record in records):
            is_other = found.segment_id.id not in {started.segment_id.id, *replaces}
            is_of_this_claim = found.writer == started.writer
            if is_other and is_of_this_claim and found.offsets.overlaps(offsets):
                raise FencedError(
                    "cannot finish the copy: an earlier attempt has stored the records",
                    segment=found.segment_id,
                )

    def require_as_planned(self, started: RemoteLogSegmentMetadata, copied: CopiedSegment) -> None:
        """Raise UnsupportedError if objects differ from the plan or custom metadata is too large.

        After a crash, no record would name the unplanned objects. Planned chunks may be missing if
        the log was shorter than planned. The size of the custom metadata is limited because every
        process keeps it as long as the segment exists (KIP-917).
        """
        keys = started.object_keys
        found = {each.key for each in copied.objects}
        planned = set(keys)
        if found != planned - unwritten_chunks(keys, found):
            raise UnsupportedError(
                "cannot store the segment: its objects differ from the planned ones",
                missing=sorted(planned - found),
                unplanned=sorted(found - planned),
            )
        size = len(copied.custom_metadata)
        if size > self._custom_metadata_max_bytes:
            raise UnsupportedError(
                "cannot store the segment: its custom metadata is too large",
                custom_metadata_bytes=size,
                custom_metadata_max_bytes=self._custom_metadata_max_bytes,
                advice=f"Raise {CUSTOM_METADATA_MAX_BYTES}",
            )

    def require_same_store(self, stored: RemoteLogSegmentMetadata) -> None:
        """Raise WrongStoreError if the earlier segments or this one are in another store.

        Raises RetriableError if the store does not answer.
        """
        if self._witness is not None:
            self._witness.require_with(stored.object_keys[:1])

    @contextmanager
    def discarding(
        self, stored: RemoteLogSegmentMetadata, kind: type[TieredStorageError]
    ) -> Iterator[None]:
        """Delete the objects after an error of `kind`: it proves that the copy did not finish.

        This is necessary because another leader may have deleted the attempt before its objects
        were written. That leader does not look for them again.
        """
        try:
            yield
        except kind:
            try:
                self._storage.delete_log_segment_data(stored)
            except TieredStorageError as error:
                _log.warning(
                    LogLine(
                        "cannot delete the objects of a failed attempt",
                        segment_id=stored.segment_id,
                        error=error,
                    )
                )
            raise


def with_copied(
    started: RemoteLogSegmentMetadata, copied: CopiedSegment
) -> RemoteLogSegmentMetadata:
    """Return the metadata with the stored objects and their custom metadata."""
    return replace(started, objects=copied.objects, custom_metadata=copied.custom_metadata)


def known_epochs(
    lineage: Lineage, offsets: OffsetRange, log_start_offset: int, *, is_whole_file: bool
) -> Lineage:
    """Remove the epochs below a log start inside the segment, where they are only a guess.

    A broker moves the start of its first epoch to the log start. If no manager claimed that epoch
    before, its real start is unknown, and lower records in the file are not corrupt. The claim with
    that guess stays recorded, and the log start may have moved since. So the start of every epoch
    may be a guess if it is inside the segment, at or below the log start. A part planned to
    begin at the log start may begin lower, with the batch that contains the log start.
    """
    entries = lineage.entries
    if not offsets.start_offset <= log_start_offset < offsets.end_offset:
        return lineage
    low = offsets.start_offset if is_whole_file else -1
    if not any(low < entry.start_offset <= log_start_offset for entry in entries):
        return lineage
    first = max(entry.epoch for entry in entries if entry.start_offset <= log_start_offset)
    later = (entry for entry in entries if entry.start_offset > log_start_offset)
    return Lineage(entries=(EpochEntry(epoch=first, start_offset=log_start_offset), *later))


def covering(lineage: Lineage, base_offset: int) -> Lineage:
    """Return the lineage, with its first epoch extended down to `base_offset` if that is lower.

    It is lower if the first batch contains the log start. COPY_SEGMENT_FINISHED contains only the
    known epochs.
    """
    first, *later = lineage.entries
    if first.start_offset <= base_offset:
        return lineage
    return Lineage(entries=(replace(first, start_offset=base_offset), *later))
