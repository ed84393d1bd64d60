"""The outcomes of reading one partition's part of a fetch from the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rlm.gateway.fetch.remote_slice import RemoteSlice


@dataclass(frozen=True, slots=True)
class ReadPending:
    """A read that is not finished in time and continues; the client gets an empty response."""


@dataclass(frozen=True, slots=True)
class ReadThrottled:
    """A read that did not start, due to the quota or a full queue; the response is empty."""


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """A read that fails: the client gets this error code for the partition."""

    error_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDivergence:
    """The reader's last fetched epoch diverges: `epoch` ended at `end_offset` (KIP-595)."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class GapBelow:
    """A gap after the last stored batch: the broker has the next batch, at `next_offset`."""

    next_offset: int


RemoteOutcome = RemoteSlice | ReadPending | ReadThrottled | ReadRefused | LogDivergence | GapBelow


def release_all(outcomes: Iterable[RemoteOutcome]) -> None:
    """Release the memory of all slices. Idempotent, thread-safe."""
    for outcome in outcomes:
        if isinstance(outcome, RemoteSlice):
            outcome.release()
