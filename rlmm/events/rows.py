"""The rows in which the cache keeps records of families, and what reads and removes them. Pure.

A family declares its rows, and its module has a function for each question that is asked of them,
for example `topic_policies`. So neither the cache nor the SPI names a family.
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
    """Rows with one value for each subject, for example for a topic id."""

    row_prefix: ClassVar[bytes]
    """What the keys of the rows begin with; the subject follows. No other prefix begins with it."""

    def from_row(self, subject: bytes, row: bytes) -> V_co:
        """Decode the value of a row. Raises CorruptError."""


class ClusterReader(Protocol):
    """Reads the rows of the cluster: a metadata manager or its cache."""

    @abstractmethod
    def cluster_values(self, rows: ClusterRows[V]) -> tuple[V, ...]:
        """Return the values of all subjects, by ascending subject."""

    @abstractmethod
    def cluster_value(self, rows: ClusterRows[V], subject: bytes) -> V | None:
        """Return the value of one subject; None if it has none."""


class KeptRows(Protocol[V_co]):
    """Contents that are kept with the keys of a partition's records."""

    kind: ClassVar[RecordKind]

    def from_content(self, content: bytes) -> V_co:
        """Decode a kept content. Raises CorruptError."""


class KeptReader(Protocol):
    """Reads kept contents: a metadata manager or its cache."""

    @abstractmethod
    def kept_values(
        self, rows: KeptRows[V], topic_id_partition: TopicIdPartition, id_prefix: bytes = b""
    ) -> tuple[V, ...]:
        """Return a partition's contents by ascending key; each id begins with `id_prefix`."""


class KnownRecords(KeptReader, Protocol):
    """The queries by which a family finds the records to remove with a segment."""

    def segment_entry(self, segment_id: RemoteLogSegmentId) -> SegmentEntry | None:
        """Return a segment's entry; None if no record of it is left."""

    def has_record(self, key: RecordKey) -> bool:
        """Return whether a record with this key of a partition is left."""


class RecordRemover(ClusterReader, Protocol):
    """Reads rows of the cluster, and removes records with reused keys: a metadata manager."""

    @abstractmethod
    def remove_record(self, key: RecordKey, *, waits: bool = False) -> None:
        """Write the tombstone of a record; any process may call this.

        With `waits`, it returns after this process has applied the tombstone, and raises
        RetriableError if that takes too long. Changes nothing if the record is unknown. Raises
        ValueError for a kind whose acceptance depends on order.
        """
