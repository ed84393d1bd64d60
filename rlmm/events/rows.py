"""Defines the rows in which the cache keeps records of families, and their readers. Pure.

A family declares its rows, and its module contains a function for each query, for example
`topic_policies`. So neither the cache nor the SPI names a family.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol, TypeVar

from rlmm.record_keys import RecordKey, RecordKind
from rlmm.state.segment_entry import SegmentEntry
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class ClusterRows(Protocol[V_co]):
    """Represents rows with one value for each subject, for example for each topic id."""

    row_prefix: ClassVar[bytes]
    """The prefix of the rows' keys, before the subject. No other prefix begins with it."""

    def from_row(self, subject: bytes, row: bytes) -> V_co:
        """Decode the value of a row. Raises CorruptError."""


class ClusterReader(Protocol):
    """Reads the rows of the cluster: a metadata manager or its cache."""

    @abstractmethod
    def cluster_values(self, rows: ClusterRows[V]) -> tuple[V, ...]:
        """Return the values of all subjects, by ascending subject."""

    @abstractmethod
    def cluster_value(self, rows: ClusterRows[V], subject: bytes) -> V | None:
        """Return the value of one subject; None if the subject has no row."""


class KeptRows(Protocol[V_co]):
    """Represents contents that are stored with the keys of a partition's records."""

    kind: ClassVar[RecordKind]

    def from_content(self, content: bytes) -> V_co:
        """Decode the content that is stored with one key. Raises CorruptError."""


class KeptReader(Protocol):
    """Reads contents that are stored with keys: a metadata manager or its cache."""

    @abstractmethod
    def kept_values(
        self, rows: KeptRows[V], topic_id_partition: TopicIdPartition, id_prefix: bytes = b""
    ) -> tuple[V, ...]:
        """Return the contents of a partition's keys whose ids begin with `id_prefix`, by key."""


class KnownRecords(KeptReader, Protocol):
    """Finds the records that a family removes together with a segment."""

    def segment_entry(self, segment_id: RemoteLogSegmentId) -> SegmentEntry | None:
        """Return a segment's entry; None if no record of the segment is left."""

    def has_record(self, key: RecordKey) -> bool:
        """Return whether a partition's record with this key is left."""


class RecordRemover(ClusterReader, Protocol):
    """Reads the cluster's rows and removes records whose keys are reused: a metadata manager."""

    @abstractmethod
    def remove_record(self, key: RecordKey, *, waits: bool = False) -> None:
        """Write the tombstone of a record; any process may call this.

        If `waits` is set, returns after this process has applied the tombstone. Raises
        RetriableError if the write fails or applying the tombstone takes too long. Has no effect if
        the record is unknown. Raises ValueError for a kind whose keys are not reused.
        """
