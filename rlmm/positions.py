"""Positions and identity of the metadata topic, as topic and cache share them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

CLUSTER_PARTITION = 0
"""Carries records without a user partition, such as policies; every process follows it."""


class MetadataPosition(NamedTuple):
    """The position of a record in the metadata topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """The next offset to read, and leader epoch and broker time of the record before it.

    These are -1 and 0 if no record was read. The broker uses the epoch to detect a truncated log.
    """

    offset: int
    leader_epoch: int = -1
    append_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    """A topic of a cluster; a checkpoint of another topic must never be merged with it."""

    cluster_id: str
    topic_id: str
    partition_count: int


class TopicRecord(NamedTuple):
    """One record as read. `value` None is a tombstone; `append_time_ms` is by the broker's clock.

    `leader_epoch` is that of the leader that appended it, -1 if unknown.
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
