"""Keeps the read leases of an application's queries in the driver's process.

Spark plans a query in a separate Python process, which ends before the query runs. So the planning
process sends its leases to the keeper, by a socket that only the same user of the host can reach.

The keeper renews the leases while the application has work, and releases them after an idle period.
It does not know which job reads which lease, so every job of the application counts as work.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Event, Thread

from rlmm.events.read_lease import ReadLeaseTaken
from rsm.segment.log_line import LogLine
from spark_tools.leases.renewal import LeaseHolder, LeaseRenewal, new_holder
from spark_tools.leases.topic import LeaseTopic

_log = logging.getLogger(__name__)
_LOOK_S = 0.5
_ANSWER_S = 30.0


class LeaseKeeper:
    """Renews and releases the leases of one application. Thread-safe.

    `address` is for `kept_leases`. `has_work` returns whether the application runs any job. After
    `idle_s` without work the leases are released.
    """

    def __init__(
        self, renewal: LeaseRenewal, has_work: Callable[[], bool], *, idle_s: float
    ) -> None:
        """Raise OSError if the socket cannot be created."""
        self.idle_s = idle_s
        self._renewal = renewal
        self._has_work = has_work
        self._directory = tempfile.mkdtemp(prefix="rlm-leases-")  # accessible to this user only
        self.address = str(Path(self._directory) / "keeper")
        self._listener = Listener(self.address, family="AF_UNIX")
        self._active_s = time.monotonic()
        self._is_closed = Event()
        for run in (self._accept, self._look):
            Thread(target=run, name="lease-keeper", daemon=True).start()

    def close(self) -> None:
        """Release all leases. Idempotent."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._renewal.close()

    def _accept(self) -> None:
        while not self._is_closed.is_set():
            try:
                plan = self._listener.accept()
            except OSError:
                return
            Thread(target=self._serve, args=(plan,), name="lease-keeper", daemon=True).start()

    def _serve(self, plan: Connection) -> None:
        """Receive one plan's leases. No lease is released meanwhile."""
        with plan, self._renewal.planning():
            with suppress(EOFError, OSError):
                plan.send(self._renewal.holder)
                while True:
                    topic, lease = plan.recv()
                    self._renewal.hold(topic, lease)
            self._active_s = time.monotonic()

    def _look(self) -> None:
        while not self._is_closed.wait(_LOOK_S):
            try:
                self._release_if_idle()
            except Exception:  # noqa: BLE001 - the next look tries again
                _log.exception("looking for work of the application failed")

    def _release_if_idle(self) -> None:
        if not self._renewal.count:
            return
        if self._renewal.is_planning or self._has_work():
            self._active_s = time.monotonic()
        elif time.monotonic() - self._active_s >= self.idle_s:
            self._renewal.release()


class _HandedOverLeases:
    """Sends the leases of one plan to the keeper."""

    def __init__(self, keeper: Connection, holder: str) -> None:
        self._keeper = keeper
        self.holder = holder

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Have the keeper renew a lease; a lease that cannot be sent expires unrenewed."""
        try:
            self._keeper.send((topic, lease))
        except OSError as error:
            _log.warning(LogLine("read lease is not renewed, its keeper has ended", error=error))


class _UnkeptLeases:
    """Takes leases that nobody renews; they stay until they expire."""

    def __init__(self) -> None:
        self.holder = new_holder()

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Do nothing."""


@contextmanager
def kept_leases(address: str | None) -> Iterator[LeaseHolder]:
    """Yield the receiver of a query plan's leases: the keeper at `address`.

    Without a keeper, as on another host than the driver's, leases are not renewed.
    """
    reached = None if address is None else _reached(address)
    if reached is None:
        if address is not None:
            _log.warning("read leases are not renewed: their keeper does not answer")
        yield _UnkeptLeases()
        return
    with reached[0]:
        yield _HandedOverLeases(*reached)


def _reached(address: str) -> tuple[Connection, str] | None:
    """Return the connection to the keeper and its holder name; None if it does not answer."""
    with suppress(OSError, EOFError):
        keeper = Client(address, family="AF_UNIX")
        if keeper.poll(_ANSWER_S):
            return keeper, keeper.recv()
        keeper.close()
    return None
