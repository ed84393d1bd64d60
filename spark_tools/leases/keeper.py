"""LeaseKeeper: holds the leases of an application's queries, in the driver's process.

Spark plans a query in a Python process of its own, which ends before the query runs. So what plans
hands its leases over to the keeper, by a socket that only the same user of the same host can reach.

The keeper renews them while the application has work, and releases them when there was none for a
while. It does not know which job reads what: a job that reads something else counts too.
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

from rlmm.events.values import ReadLeaseTaken
from spark_tools.leases.renewal import LeaseHolder, LeaseRenewal, new_holder
from spark_tools.leases.topic import LeaseTopic

_log = logging.getLogger(__name__)
_LOOK_S = 0.5
_ANSWER_S = 30.0


class LeaseKeeper:
    """Thread-safe. `address` is for `kept_leases`.

    `has_work` says whether anything of the application runs; `idle_s` is how long nothing may have
    run before the leases are released.
    """

    def __init__(
        self, renewal: LeaseRenewal, has_work: Callable[[], bool], *, idle_s: float
    ) -> None:
        """OSError if there can be no socket."""
        self.idle_s = idle_s
        self._renewal = renewal
        self._has_work = has_work
        self._directory = tempfile.mkdtemp(prefix="rlm-leases-")  # nobody else may enter it
        self.address = str(Path(self._directory) / "keeper")
        self._listener = Listener(self.address, family="AF_UNIX")
        self._active_s = time.monotonic()
        self._is_closed = Event()
        for run in (self._accept, self._look):
            Thread(target=run, name="lease-keeper", daemon=True).start()

    def close(self) -> None:
        """Release what is held. Idempotent."""
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
        """Take over what one plan leases. Nothing is released while it does."""
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
            except Exception:  # noqa: BLE001 - looked at again
                _log.exception("looking for work of the application failed")

    def _release_if_idle(self) -> None:
        if not self._renewal.count:
            return
        if self._renewal.is_planning or self._has_work():
            self._active_s = time.monotonic()
        elif time.monotonic() - self._active_s >= self.idle_s:
            self._renewal.release()


class _HandedOverLeases:
    """Of one plan."""

    def __init__(self, keeper: Connection, holder: str) -> None:
        self._keeper = keeper
        self.holder = holder

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Have it renewed. What cannot be handed over stays until it expires."""
        try:
            self._keeper.send((topic, lease))
        except OSError as error:
            _log.warning("a read lease is not renewed: its keeper is gone: %s", error)


class _UnkeptLeases:
    """Leases that stay until they expire."""

    def __init__(self) -> None:
        self.holder = new_holder()

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Nothing: nobody renews it."""


@contextmanager
def kept_leases(address: str | None) -> Iterator[LeaseHolder]:
    """What hands leases over to the keeper at `address`, while a query is planned.

    Where there is none, as on another host than the driver's, leases are not renewed.
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
    """The keeper, and in whose name leases are taken."""
    with suppress(OSError, EOFError):
        keeper = Client(address, family="AF_UNIX")
        if keeper.poll(_ANSWER_S):
            return keeper, keeper.recv()
        keeper.close()
    return None
