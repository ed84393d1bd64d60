"""Represents the records of a canary topic, and the results of writing and reading them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRecord:
    """Represents a record of a canary topic. Its value is unique in the topic."""

    partition: int
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryWritten:
    """Represents the values of acknowledged records, by partition and offset.

    `problem` names the partitions without an acknowledged record, and why; else it is empty.
    """

    positions: Mapping[tuple[int, int], bytes]
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRead:
    """Represents the values of records by partition and offset, and each earliest offset.

    `problem` says why the read ended early, and which brokers the server listed; else it is empty.
    """

    found: Mapping[tuple[int, int], bytes]
    earliest: Mapping[int, int]
    problem: str
