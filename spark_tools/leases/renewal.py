"""Renews read leases until they are released.

After a third of a lease's duration, a new record renews it. A tombstone releases it. Then segments
can expire at once, and not only after the lease's end.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from typing import Protocol
from uuid import uuid4

from rlmm.codec import encode
from rlmm.events.read_lease import READ_LEASE_MAX_MS, ReadLeaseTaken
from rlmm.partitioner import metadata_partition
from rlmm.topic.event_topic import EventTopic
from rsm.segment.log_line import LogLine
from spark_tools.leases.topic import LeaseTopic

_log = logging.getLogger(__name__)
_RENEWALS = 3  # A lease is renewed this number of times within its duration.
_STEP_S = 0.5
_RETRY_MAX_S = 5.0


class LeaseHolder(Protocol):
    """Receives the leases of a plan, to renew them if it can."""

    @property
    def holder(self) -> str:
        """Return the name of the holder, as lease records contain it."""

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Renew a lease that was just written; a later lease with the same id replaces it."""


class RenewedLeases(LeaseHolder, Protocol):
    """Receives the leases of several plans, made one after the other, and renews them."""

    def planning(self) -> AbstractContextManager[None]:
        """Block releases and delay renewals of earlier leases while a plan takes leases."""

    def release(self) -> None:
        """Release all leases, unless a plan is taking more."""


@dataclass(slots=True, kw_only=True)
class _LeaseEntry:
    """Represents a lease with its start `since_s` and next renewal `due_s`, in monotonic time."""

    topic: LeaseTopic
    lease: ReadLeaseTaken
    since_s: float
    due_s: float


class LeaseRenewal:
    """Renews leases in its own thread. Thread-safe; `hold` does not wait for that thread.

    Memory: an entry per lease. Renewal of a lease ends after 24 hours, the maximum.
    """

    def __init__(
        self, holder: str, *, opened: Callable[[LeaseTopic], EventTopic] = LeaseTopic.open
    ) -> None:
        self.holder = holder
        self._opened = opened
        self._lock = Lock()
        self._writing = Lock()
        self._entries: dict[tuple[object, ...], _LeaseEntry] = {}
        self._topics: dict[tuple[str, str], EventTopic] = {}
        self._failing: set[tuple[str, str]] = set()
        self._plans_count = 0
        self._is_closed = Event()
        self._thread: Thread | None = None

    @property
    def count(self) -> int:
        """Return the number of leases."""
        return len(self._entries)

    @contextmanager
    def planning(self) -> Iterator[None]:
        """Block releases while a plan takes leases and sends them here.

        Renewals also wait, but never so long that leases expire. The renewal of an earlier lease
        would replace a newer lease of the plan that has not arrived here yet.
        """
        with self._writing:
            self._plans_count += 1
        try:
            yield
        finally:
            with self._writing:
                self._plans_count -= 1

    @property
    def is_planning(self) -> bool:
        """Return whether any thread is within `planning`."""
        return self._plans_count > 0

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Renew a lease that was just written; a later lease with the same id replaces it.

        Raises RuntimeError if the thread cannot be started. The next call then tries again.
        """
        now_s = time.monotonic()
        entry = _LeaseEntry(topic=topic, lease=lease, since_s=now_s, due_s=now_s + _wait_s(lease))
        with self._lock:
            self._entries[_key(entry)] = entry
            if self._thread is None:
                thread = Thread(target=self._run, name="read-leases", daemon=True)
                thread.start()
                self._thread = thread

    def release(self) -> None:
        """Release all leases, unless a plan is taking more. If this fails, the leases expire."""
        with self._writing:
            if self.is_planning and not self._is_closed.is_set():
                return
            with self._lock:
                released, self._entries = list(self._entries.values()), {}
            try:
                self._write_tombstones(released)
            finally:
                self._close_topics()

    def close(self) -> None:
        """Release all leases. Idempotent; the caller must not call `hold` afterwards."""
        self._is_closed.set()
        if self._thread is not None:
            self._thread.join()
        self.release()

    def _run(self) -> None:
        while not self._is_closed.wait(_STEP_S):
            self._renew_due()

    def _renew_due(self) -> None:
        with self._lock:
            due = [entry for entry in self._entries.values() if entry.due_s <= time.monotonic()]
        away: set[tuple[str, str]] = set()
        for entry in due:
            name = _name(entry.topic)
            if name in away or self._is_closed.is_set():
                continue
            try:
                self._renew(entry)
                self._failing.discard(name)
            except Exception as error:  # noqa: BLE001 - other clusters' leases must be renewed
                away.add(name)
                entry.due_s = time.monotonic() + min(_RETRY_MAX_S, _wait_s(entry.lease) / 2)
                if name not in self._failing:
                    _log.warning(LogLine("cannot renew a read lease: trying again", error=error))
                self._failing.add(name)

    def _renew(self, entry: _LeaseEntry) -> None:
        """Renew the lease unless it was replaced or released, or can wait until a plan ends.

        Stops the renewal of a lease that is a day old.
        """
        with self._writing:
            now_s, wait_s = time.monotonic(), _wait_s(entry.lease)
            with self._lock:
                is_current = self._entries.get(_key(entry)) is entry
            if not is_current or (self.is_planning and now_s < entry.due_s + wait_s / 2):
                return
            if now_s - entry.since_s >= READ_LEASE_MAX_MS / 1000:
                _log.warning(
                    LogLine(
                        "stopped renewing a read lease after a day",
                        partition=entry.lease.topic_id_partition,
                        lease_id=entry.lease.lease_id,
                        holder=entry.lease.holder,
                    )
                )
                with self._lock:
                    del self._entries[_key(entry)]
                return
            self._write(entry, replace(entry.lease, event_id=uuid4()))
            entry.due_s = now_s + wait_s

    def _write_tombstones(self, released: Sequence[_LeaseEntry]) -> None:
        away: set[tuple[str, str]] = set()
        for entry in released:
            if (name := _name(entry.topic)) in away:
                continue
            try:
                self._write(entry, None)
            except Exception as error:  # noqa: BLE001 - other clusters' leases must be released
                away.add(name)
                what = "cannot release read leases: they expire later"
                _log.warning(LogLine(what, error=error))

    def _close_topics(self) -> None:
        """Close all topics, even if one fails: an idle application keeps no connection."""
        with ExitStack() as topics:
            for topic in self._topics.values():
                topics.callback(topic.close)
            self._topics.clear()

    def _write(self, entry: _LeaseEntry, lease: ReadLeaseTaken | None) -> None:
        """Write a lease, or the tombstone of the entry's lease if `lease` is None.

        Raises RetriableError if the brokers do not acknowledge the record, and the client's error
        if its configuration is unusable.
        """
        record = encode(lease or entry.lease)
        partition = metadata_partition(entry.lease.topic_id_partition, entry.topic.partition_count)
        name = _name(entry.topic)
        if name not in self._topics:
            self._topics[name] = self._opened(entry.topic)
        value = None if lease is None else record.value
        self._topics[name].publish(partition, record.key, value)


def new_holder() -> str:
    """Return a unique, readable name for a reader on this host."""
    return f"spark:{socket.gethostname()}:{uuid4()}"


def _wait_s(lease: ReadLeaseTaken) -> float:
    return lease.duration_ms / 1000 / _RENEWALS


def _name(topic: LeaseTopic) -> tuple[str, str]:
    return topic.client.get("bootstrap.servers", ""), topic.name


def _key(entry: _LeaseEntry) -> tuple[object, ...]:
    return *_name(entry.topic), entry.lease.topic_id_partition, entry.lease.lease_id
