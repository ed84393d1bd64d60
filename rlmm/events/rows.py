"""The rows in which the cache keeps records of the cluster, and what reads them. Pure.

A family declares its rows, and its module has a function for each question that is asked of them,
for example `topic_policies`. So neither the cache nor the SPI names a family.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class ClusterRows(Protocol[V_co]):
    """Rows with one value for each subject, for example for a topic id."""

    row_prefix: ClassVar[bytes]
    """What the keys of the rows begin with; the subject follows. No other prefix begins with it."""

    def from_row(self, subject: bytes, row: bytes) -> V_co:
        """Decode the value of a row. CorruptError."""


class ClusterReader(Protocol):
    """Reads the rows of the cluster: a metadata manager or its cache."""

    def cluster_values(self, rows: ClusterRows[V]) -> tuple[V, ...]:
        """Return the values of all subjects, by ascending subject."""

    def cluster_value(self, rows: ClusterRows[V], subject: bytes) -> V | None:
        """Return the value of one subject."""
