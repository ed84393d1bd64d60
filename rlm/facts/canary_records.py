"""Represents the records of a canary topic, and what a write and a read of them returned. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRecord:
    """Represents a record of a canary topic; no two are equal."""

    partition: int
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryWritten:
    """Represents acknowledged records by position; `problem` describes the others, if any."""

    positions: Mapping[tuple[int, int], bytes]
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRead:
    """Represents records by partition and offset, and the server's earliest offsets.

    `problem` says why the read ended early and which addresses the server gives; else it is empty.
    """

    found: Mapping[tuple[int, int], bytes]
    earliest: Mapping[int, int]
    problem: str
