"""Keeps the read leases of an application's queries in the driver's process.

Planning processes send their leases (handover.py) through a socket. Only the same user of the host
can connect to it.

The keeper renews the leases of batch queries while the application runs jobs, and releases them
after an idle period. It cannot assign leases to jobs, so every job of the application counts. The
keeper renews the leases of a stream until the stream's process releases them, or ends in any way:
the operating system then closes the socket.
"""

from __future__ import annotations

import logging
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

from rsm.segment.log_line import LogLine
from spark_tools.leases.handover import Message, Signal, Use
from spark_tools.leases.renewal import LeaseRenewal

_log = logging.getLogger(__name__)
_LOOK_S = 0.5


class LeaseKeeper:
    """Renews and releases the leases of one application. Thread-safe.

    `batch_leases` and `stream_leases` connect to `address`. `has_work` returns whether the
    application runs any job. If it runs none for `idle_s`, the keeper releases the leases of batch
    queries.
    """

    def __init__(
        self,
        new_renewal: Callable[[], LeaseRenewal],
        has_work: Callable[[], bool],
        *,
        idle_s: float,
    ) -> None:
        """Raise OSError if the socket cannot be created."""
        self.idle_s = idle_s
        self._new_renewal = new_renewal
        self._renewal = new_renewal()  # All batch queries share it.
        self._has_work = has_work
        self._directory = tempfile.mkdtemp(prefix="rlm-leases-")  # Only this user can access it.
        self.address = str(Path(self._directory) / "keeper")
        with ExitStack() as failed:
            failed.callback(shutil.rmtree, self._directory, ignore_errors=True)
            self._listener = failed.enter_context(socket.socket(socket.AF_UNIX))
            self._listener.bind(self.address)  # The directory's path may be too long.
            self._listener.listen()
            self._listener.settimeout(_LOOK_S)  # Closing a socket does not interrupt `accept`.
            failed.pop_all()
        self._active_s = time.monotonic()
        self._is_closed = Event()
        self._served: list[Thread] = []
        self._accepting = _started(self._accept)
        _started(self._look)

    def close(self) -> None:
        """Disconnect all planning processes and release all leases. Idempotent.

        Plans that are not finished continue. The leases that they take from then on expire.
        """
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        with suppress(OSError), socket.socket(socket.AF_UNIX) as process:
            process.settimeout(0)
            process.connect(self.address)  # So that `accept` returns now.
        self._accepting.join()
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        for thread in self._served:
            thread.join()
        self._renewal.close()

    def _accept(self) -> None:
        is_failing = False
        while not self._is_closed.is_set():
            try:
                process, _ = self._listener.accept()
                process.settimeout(None)  # Whatever the default timeout of this process is.
                self._begin_serving(Connection(process.detach()))
                is_failing = False
            except TimeoutError:
                continue
            except (OSError, RuntimeError) as error:
                # Too many files are open: new processes then wait. Or no thread can be started.
                if not (is_failing or self._is_closed.is_set()):
                    _log.warning(LogLine("cannot receive read leases: trying again", error=error))
                is_failing = True
                self._is_closed.wait(_LOOK_S)

    def _begin_serving(self, process: Connection) -> None:
        """Serve a process on a thread that `close` waits for; disconnect it after `close`.

        Raises RuntimeError if the thread cannot be started. The process is then disconnected.
        """
        if self._is_closed.is_set():
            process.close()
            return
        running = [thread for thread in self._served if thread.is_alive()]
        try:
            self._served = [*running, _started(self._serve, process)]
        except RuntimeError:
            process.close()
            raise

    def _serve(self, process: Connection) -> None:
        """Receive the leases of one planning process until it ends."""
        with process, suppress(EOFError, OSError), ExitStack() as leases:
            renewal = self._renewal
            messages = self._received(process)
            if next(messages, None) is Use.STREAM:
                renewal = leases.enter_context(closing(self._new_renewal()))
            plan = leases.enter_context(ExitStack())
            process.send(renewal.holder)
            for message in messages:
                match message:
                    case Signal.PLAN:
                        plan.enter_context(renewal.planning())
                        plan.callback(self._set_active)  # Before the plan stops blocking releases.
                        process.send(renewal.holder)
                    case Signal.PLANNED:
                        plan.close()
                    case Signal.RELEASE:
                        renewal.release()
                    case (topic, lease):
                        renewal.hold(topic, lease)

    def _received(self, process: Connection) -> Iterator[Message]:
        """Yield a process's messages until it ends, or until the keeper closes and none is left."""
        with suppress(EOFError, OSError):
            while True:
                is_closed = self._is_closed.is_set()
                if process.poll(0 if is_closed else _LOOK_S):
                    yield process.recv()
                elif is_closed:
                    return

    def _look(self) -> None:
        while not self._is_closed.wait(_LOOK_S):
            try:
                self._release_if_idle()
            except Exception:  # noqa: BLE001 - the next look tries again
                _log.exception("cannot find out whether the application runs jobs: trying again")

    def _release_if_idle(self) -> None:
        renewal = self._renewal
        if not renewal.count or renewal.is_planning or self._has_work():
            self._set_active()
        elif time.monotonic() - self._active_s >= self.idle_s:
            renewal.release()

    def _set_active(self) -> None:
        self._active_s = time.monotonic()


def _started(run: Callable[..., None], *arguments: object) -> Thread:
    thread = Thread(target=run, args=arguments, name="lease-keeper", daemon=True)
    thread.start()
    return thread
