"""What became of reading one partition's part of a fetch from the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rlm.gateway.fetch.remote_slice import RemoteSlice


@dataclass(frozen=True, slots=True)
class ReadPending:
    """Not in time; the read goes on, so the client is told that there is nothing yet."""


@dataclass(frozen=True, slots=True)
class ReadThrottled:
    """Not begun: the quota is used up or the readers' queue full. There is nothing yet."""


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """The partition gets this error code."""

    error_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDivergence:
    """What the reader fetched last was cut off since: its epoch ended at `end_offset` (KIP-595)."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class GapBelow:
    """A gap at the end of what is stored: the next batch is the broker's, at `next_offset`."""

    next_offset: int


RemoteOutcome = RemoteSlice | ReadPending | ReadThrottled | ReadRefused | LogDivergence | GapBelow


def release_all(outcomes: Iterable[RemoteOutcome]) -> None:
    """Give back the memory of what was read. Idempotent, thread-safe."""
    for outcome in outcomes:
        if isinstance(outcome, RemoteSlice):
            outcome.release()
