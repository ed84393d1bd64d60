"""What is known of one stored log segment: KIP-405's RemoteLogSegmentMetadata, and its states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.ranges import OffsetRange


class SegmentState(Enum):
    """KIP-405's RemoteLogSegmentState; the value is its order in a segment's life."""

    COPY_SEGMENT_STARTED = 1
    COPY_SEGMENT_FINISHED = 2
    DELETE_SEGMENT_STARTED = 3
    DELETE_SEGMENT_FINISHED = 4

    # Looked up for each event that is folded, and Enum's own hash is that of a name.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One object of a segment. Length and checksum are None until it has been written."""

    key: str
    length_bytes: int | None = None
    crc32c: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who decided: a leader epoch alone does not tell a restarted process from its predecessor."""

    broker_id: int
    leader_epoch: int
    incarnation: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadata:
    """One stored (or to be stored, or to be deleted) log segment, whole in every record of it.

    `offsets` are [base offset, next segment's base offset). `segment_leader_epochs` are the
    lineage within them; they begin above the base offset where the log start lies inside the
    segment, and what is below is then not readable. `objects` are named before the first byte is
    written; the layout that wrote them is named by `layout`. `custom_metadata` are the bytes that
    the remote storage manager gave with the copy, for itself (KIP-917). `unknown_fields` are what a
    newer version wrote beside, in protobuf. Immutable; `in_state` gives the next step of its life.

    One that was made `on_demand` is no other, but reads each field when it is first asked for.
    """

    segment_id: RemoteLogSegmentId
    offsets: OffsetRange
    max_timestamp_ms: int
    segment_size_bytes: int
    segment_leader_epochs: Lineage
    state: SegmentState
    writer: Writer
    event_timestamp_ms: int
    layout: str
    objects: tuple[StoredObject, ...]
    has_transaction_index: bool = False
    custom_metadata: bytes = b""
    unknown_fields: bytes = b""
    _read: Callable[[str], Any] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def on_demand(cls, read: Callable[[str], Any]) -> RemoteLogSegmentMetadata:
        """One whose fields `read` gives by their names, each once or, by several threads, twice.

        What they say must have been found right before: nothing is checked here. Whoever asks for
        a field gets what `read` raises.
        """
        made = object.__new__(cls)
        object.__setattr__(made, "_read", read)
        return made

    if not TYPE_CHECKING:  # where all fields are known

        def __getattr__(self, name: str) -> object:
            """Called for what is not set: a field that was not asked for yet, or none."""
            if name not in _FIELDS or self._read is None:
                raise AttributeError(f"a segment's metadata has no {name!r}")
            value = self._read(name)
            object.__setattr__(self, name, value)
            return value

    def __reduce__(self) -> tuple[Any, ...]:
        whole = {name: getattr(self, name) for name in _FIELDS}
        return partial(type(self), **whole), ()

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"a segment without offsets: {self.offsets}")
        if not self.segment_leader_epochs:
            raise ValueError("a segment without leader epochs")
        if self.segment_leader_epochs.entries[0].start_offset < self.offsets.start_offset:
            raise ValueError("leader epochs begin below the segment's base offset")
        if self.segment_leader_epochs.entries[-1].start_offset >= self.offsets.end_offset:
            raise ValueError("leader epochs reach beyond the segment's end")
        if self.segment_size_bytes < 0:
            raise ValueError(f"negative size {self.segment_size_bytes}")

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return self.segment_id.topic_id_partition

    def in_state(
        self,
        state: SegmentState,
        *,
        event_timestamp_ms: int,
        writer: Writer | None = None,
    ) -> RemoteLogSegmentMetadata:
        """The same segment, one step on; the writer as before unless given."""
        return replace(
            self,
            state=state,
            event_timestamp_ms=event_timestamp_ms,
            writer=self.writer if writer is None else writer,
        )


_FIELDS = frozenset(each.name for each in fields(RemoteLogSegmentMetadata) if each.init)
