"""Combines concurrent requests for offsets: callers that wait share the next request.

A copy fetches offsets before its first and after its last byte, and a response must not be older
than its request. Many copies at once would queue for one connection, with three requests each. So
a caller that finds the connection busy joins the next request with all other waiting callers.
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
class _Question:
    """Represents the request of several callers; `done` is set with its result or error."""

    epochs: dict[TopicIdPartition, int] = field(default_factory=dict)
    result: _Offsets | None = None
    error: BaseException | None = None
    done: Event = field(default_factory=Event)


class SharedOffsets:
    """Shares requests. Thread-safe. Memory: the partitions that callers request at one moment."""

    def __init__(self, put: Callable[[Callable[[], _Epochs]], _Offsets]) -> None:
        """`put` waits for the connection, then requests what its argument returns."""
        self._put = put
        self._lock = Lock()
        self._open: _Question | None = None

    def of(self, leader_epochs: _Epochs) -> _Offsets:
        """Return offsets of a request that started after this call began. Raises as `put`."""
        question, is_first = self._join(leader_epochs)
        if is_first:
            self._ask(question)
        question.done.wait()
        if question.error is not None:
            raise question.error
        assert question.result is not None
        found = question.result
        return PartitionResults(
            succeeded={
                tip: found.succeeded[tip] for tip in leader_epochs if tip in found.succeeded
            },
            failed={tip: found.failed[tip] for tip in leader_epochs if tip in found.failed},
        )

    def _join(self, epochs: _Epochs) -> tuple[_Question, bool]:
        """Return the request to wait for, and whether the caller has to send it."""
        with self._lock:
            question = self._open
            if question is not None and not _contradict(question.epochs, epochs):
                question.epochs.update(epochs)
                return question, False
            # A caller with another epoch starts its own request; later callers join that one.
            self._open = question = _Question(epochs=dict(epochs))
            return question, True

    def _ask(self, question: _Question) -> None:
        try:
            question.result = self._put(lambda: self._close(question))
        except BaseException as error:  # noqa: BLE001 - `of` raises it
            question.error = error
        finally:
            self._close(question)
            question.done.set()

    def _close(self, question: _Question) -> _Epochs:
        """Return what to request; no caller can join after this."""
        with self._lock:
            if self._open is question:
                self._open = None
            return dict(question.epochs)


def _contradict(one: _Epochs, other: _Epochs) -> bool:
    return any(one.get(tip, epoch) != epoch for tip, epoch in other.items())
