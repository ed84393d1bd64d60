"""LogSource: the partitions a broker hosts, their segments, and a segment opened consistently."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSegment:
    """A rolled segment: `offsets` end at the next file's base offset. Or a part of a file.

    `max_timestamp_ms` as Kafka's LogSegment.largestTimestamp: the file's time where no record
    has one. `rolled_ms` is when the broker rolled the file, by this host's clock; None of a file
    that is still being written. A part names by `part_of` the base offset of its file, whose size
    and times it has; `offsets` are then what is wanted, and opening it tells which whole batches
    there are. `is_active`: the file is still being written, and the part ends below what may
    change.
    """

    offsets: OffsetRange
    size_bytes: int
    max_timestamp_ms: int
    rolled_ms: int | None = None
    part_of: int | None = None
    is_active: bool = False

    @property
    def is_whole_file(self) -> bool:
        return self.part_of is None

    @property
    def file_base_offset(self) -> int:
        """The base offset of the file that holds it."""
        return self.offsets.start_offset if self.part_of is None else self.part_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLog:
    """A partition's log directory as one listing shows it.

    `rolled` ascend and adjoin; `active_base_offset` begins the segment being written, of
    `active_size_bytes` and last written to at `active_written_ms`; `checkpoint` is the leader-epoch
    checkpoint as it stands, which may hold stale entries but never lacks one.
    """

    rolled: tuple[LocalSegment, ...]
    active_base_offset: int
    active_size_bytes: int
    active_written_ms: int
    checkpoint: Lineage


class OpenSegment(Protocol):
    """A segment held open by descriptor; deleting or renaming its file does not disturb it."""

    @property
    def data(self) -> LogSegmentData:
        """Content and companions. The content checks each batch's CRC, offsets and epoch.

        Its offsets are those of whole batches; of a part they may begin below what was wanted, and
        end below that in a file that is being written.
        """

    @property
    def max_timestamp_ms(self) -> int:
        """The greatest timestamp of the batches themselves; the file's time where none has one.

        A listing's, taken from the time index, is only as right as that file.
        """

    def verify_unchanged(self) -> None:
        """After the last byte: raises RetriableError if the file is not what was opened."""


class LogSource(ABC):
    """The logs of one broker. All methods are thread-safe."""

    @abstractmethod
    def partitions(self) -> tuple[TopicIdPartition, ...]:
        """Partitions with a log here; not future, stray or deleted ones, nor cluster metadata.

        RetriableError if a log dir cannot be read: what it holds is not known.
        """

    @abstractmethod
    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        """List one partition's log.

        NotFoundError if it is not here; RetriableError if its directory cannot be read now (an
        offline log dir is not an empty one).
        """

    @abstractmethod
    def open_segment(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> AbstractContextManager[OpenSegment]:
        """Open a rolled segment, or a part of a file, for copying.

        Indexes are cut to their true size and checked against the log, rebuilt where they are
        wrong, and made again for a part; a producer snapshot or transaction index that is absent is
        recorded as absent, as the snapshot of a file that is still being written is.
        Aborted transactions are gathered from this and later transaction indexes; that these are
        complete follows from `last_stable_offset`, asked for before this call, which the segment
        must not reach above. NotFoundError if the segment is gone, RetriableError if it is not
        what was listed or cannot be read now, CorruptError if it cannot be what it has to be.
        """
