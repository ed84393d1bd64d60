"""Hands the read leases of Spark's planning processes over to the keeper of their application.

Spark plans in separate Python processes. The process of a batch query ends before the query runs.
Spark ends the process of a stream with a signal, and does not call its reader's `stop`. So neither
process can release its leases; the keeper (keeper.py) in the driver's process releases them.

The process sends `Use`, and the keeper answers with the name of the leases' holder. Then the
process sends leases and signals, until it closes its connection or ends. Of these messages, the
keeper answers only `PLAN`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum, auto
from multiprocessing.connection import Client, Connection
from typing import TypeAlias

from rlmm.events.read_lease import ReadLeaseTaken
from rsm.segment.log_line import LogLine
from spark_tools.leases.renewal import LeaseHolder, LeaseRenewal, RenewedLeases, new_holder
from spark_tools.leases.topic import LeaseTopic

_log = logging.getLogger(__name__)
_RESPONSE_S = 30.0


class Use(Enum):
    """Represents the kind of query that a process plans; the kind decides when leases end."""

    BATCH = auto()  # Leases end after an idle period of the application.
    STREAM = auto()  # Leases end on RELEASE, and when the process ends.


class Signal(Enum):
    """Represents a message that a process sends between leases."""

    PLAN = auto()
    PLANNED = auto()
    RELEASE = auto()


Message: TypeAlias = Use | Signal | tuple[LeaseTopic, ReadLeaseTaken]


class _HandedOverLeases:
    """Sends leases to the keeper. After a failure, it sends nothing more. Not thread-safe."""

    def __init__(self, keeper: Connection, holder: str) -> None:
        self.holder = holder
        self._keeper = keeper
        self._has_keeper = True
        self._has_leases = False

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Request renewal by the keeper. If the request cannot be sent, the lease expires."""
        self._has_leases = True
        self._send((topic, lease))

    @contextmanager
    def planning(self) -> Iterator[None]:
        """Block releases and delay renewals, as `LeaseRenewal.planning` does."""
        self._send(Signal.PLAN, is_answered=True)
        try:
            yield
        finally:
            self._send(Signal.PLANNED)

    def release(self) -> None:
        """Request the release of all sent leases. Does not wait for the keeper."""
        if self._has_leases:
            self._send(Signal.RELEASE)
        self._has_leases = False

    def close(self) -> None:
        """Disconnect; the keeper acts as if this process had ended."""
        self._keeper.close()

    def _send(self, message: Message, *, is_answered: bool = False) -> None:
        if not self._has_keeper:
            return
        try:
            self._keeper.send(message)
            if is_answered:
                _answer(self._keeper)
        except (OSError, EOFError) as error:
            self._has_keeper = False
            what = "cannot renew read leases: their keeper does not answer"
            _log.warning(LogLine(what, error=error))


class _UnkeptLeases:
    """Accepts leases, and does not renew them. They expire."""

    def __init__(self) -> None:
        self.holder = new_holder()

    def hold(self, topic: LeaseTopic, lease: ReadLeaseTaken) -> None:
        """Do nothing."""


@contextmanager
def batch_leases(address: str | None) -> Iterator[LeaseHolder]:
    """Yield the holder of a batch query's leases; plan the query within the context.

    The keeper at `address` renews the leases. If there is no keeper, as with Spark Connect, they
    expire.
    """
    kept = _reached(address, Use.BATCH)
    if kept is None:
        yield _UnkeptLeases()
        return
    with closing(kept), kept.planning():
        yield kept


@contextmanager
def stream_leases(address: str | None) -> Iterator[RenewedLeases]:
    """Yield the holder of a stream's leases; release them at the end of the context.

    The keeper at `address` also releases them when this process ends. If there is no keeper, this
    process renews its leases; if it is killed, they expire.
    """
    leases = _reached(address, Use.STREAM) or LeaseRenewal(new_holder())
    with closing(leases):
        yield leases


def _reached(address: str | None, use: Use) -> _HandedOverLeases | None:
    """Connect to the keeper; return None if there is no address, or if it does not answer."""
    if address is None:
        return None
    try:
        keeper = Client(address, family="AF_UNIX")
        keeper.send(use)
        return _HandedOverLeases(keeper, _answer(keeper))
    except (OSError, EOFError) as error:
        what = "cannot use the keeper of read leases: it does not answer"
        _log.warning(LogLine(what, error=error))
        return None


def _answer(keeper: Connection) -> str:
    """Return the keeper's next message.

    Raises OSError, and EOFError if the keeper has disconnected.
    """
    if not keeper.poll(_RESPONSE_S):
        raise TimeoutError(f"the keeper of read leases did not answer within {_RESPONSE_S:.0f} s")
    answer: str = keeper.recv()
    return answer
