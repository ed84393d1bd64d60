"""Combines concurrent requests for offsets: callers that wait share the next request.

A copy fetches offsets before its first and after its last byte, and each response must be newer
than the call. Concurrent copies would queue for one connection, each with three requests. So all
callers that wait for the connection share the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Lock

from rlm.broker.partition_results import PartitionResults
from rlm.facts.partition_offsets import PartitionOffsets
from rsm.segment.ids import TopicIdPartition

_Offsets = PartitionResults[PartitionOffsets]
_Epochs = Mapping[TopicIdPartition, int]


@dataclass(slots=True, eq=False)
class _SharedRequest:
    """Represents the request of several callers; `done` is set after `result` or `error`."""

    epochs: dict[TopicIdPartition, int] = field(default_factory=dict)
    result: _Offsets | None = None
    error: BaseException | None = None
    done: Event = field(default_factory=Event)


class SharedOffsets:
    """Shares requests. Thread-safe. Memory: the partitions that waiting callers request."""

    def __init__(self, put: Callable[[Callable[[], _Epochs]], _Offsets]) -> None:
        """`put` waits for the connection, then requests what its argument returns."""
        self._put = put
        self._lock = Lock()
        self._open: _SharedRequest | None = None

    def of(self, leader_epochs: _Epochs) -> _Offsets:
        """Return offsets from a request that starts after this call.

        Raises the errors of `put`.
        """
        shared, is_first = self._join(leader_epochs)
        if is_first:
            self._ask(shared)
        shared.done.wait()
        if shared.error is not None:
            raise shared.error
        assert shared.result is not None
        found = shared.result
        return PartitionResults(
            succeeded={
                tip: found.succeeded[tip] for tip in leader_epochs if tip in found.succeeded
            },
            failed={tip: found.failed[tip] for tip in leader_epochs if tip in found.failed},
        )

    def _join(self, epochs: _Epochs) -> tuple[_SharedRequest, bool]:
        """Return the request to wait for, and whether the caller has to send it."""
        with self._lock:
            shared = self._open
            if shared is not None and not _contradict(shared.epochs, epochs):
                shared.epochs.update(epochs)
                return shared, False
            # A caller with another epoch starts its own request; later callers join that request.
            self._open = shared = _SharedRequest(epochs=dict(epochs))
            return shared, True

    def _ask(self, shared: _SharedRequest) -> None:
        try:
            shared.result = self._put(lambda: self._close(shared))
        except BaseException as error:  # noqa: BLE001 - `of` raises it
            shared.error = error
        finally:
            self._close(shared)
            shared.done.set()

    def _close(self, shared: _SharedRequest) -> _Epochs:
        """Return the partitions to request; after this, no caller can join."""
        with self._lock:
            if self._open is shared:
                self._open = None
            return dict(shared.epochs)


def _contradict(one: _Epochs, other: _Epochs) -> bool:
    return any(one.get(tip, epoch) != epoch for tip, epoch in other.items())
