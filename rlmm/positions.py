"""Defines the positions and the identity of the metadata topic, for the topic and the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

CLUSTER_PARTITION = 0
"""Contains the records about no user partition, such as policies; every process follows it."""


class MetadataPosition(NamedTuple):
    """Represents the position of a record in the metadata topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """Represents the next offset to read, and what is known of the record read before it.

    `leader_epoch` is -1 and `append_time_ms` is 0 if no record was read. The broker uses the epoch
    to detect a truncated log.
    """

    offset: int
    leader_epoch: int = -1
    append_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    """Represents a topic of a cluster; a checkpoint is valid only for an equal identity."""

    cluster_id: str
    topic_id: str
    partition_count: int


class TopicRecord(NamedTuple):
    """Represents one record as it was read; `value` is None for a tombstone.

    `append_time_ms` is by the broker's clock. `leader_epoch` is the epoch of the leader that
    appended the record; -1 if unknown.
    """

    partition: int
    offset: int
    append_time_ms: int
    key: bytes
    value: bytes | None
    leader_epoch: int = -1


new_record: Callable[[tuple[int, int, int, bytes, bytes | None, int]], TopicRecord]
new_record = partial(tuple.__new__, TopicRecord)
"""Builds a record from all its fields in order, in half the constructor's time."""
