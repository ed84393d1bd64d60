"""Runs a worker and its HTTP server as a process.

A WorkerProgram defines the worker and its server. This module runs them until a stop signal, the
end of the supervisor, or a permanent failure.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from prometheus_client import CollectorRegistry

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics.metrics import Metrics
from rlm.process.parent_watch import watch_parent
from rlm.process.signals import RELOAD_SIGNAL, STOP_SIGNALS, SignalInbox, signal_inbox
from rlm.process.umask import restricted_umask
from rlm.rest.http_server import bind_listener, bound_address
from rlm.worker.hang_watch import HangWatch, hang_watch
from rlm.worker.log_level import reload_log_level
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from rsm.segment.log_line import LogLine

LOOPBACK_LISTENER = HostPort(host="127.0.0.1", port=0)
"""Accepts connections only from this host; the system chooses the port."""

STOP_TIMEOUT_MS = 12_000  # The supervisor must wait longer before it kills the worker.
HANG_MS = 120_000
_STDIN_FD = 0
_TICK_MS = 500
_log = logging.getLogger(__name__)


class Worker(Protocol):
    """Represents the work of a process, such as the manager's or the gateway's."""

    def start(self) -> None:
        """Start to work and return.

        If the cluster has problems, the worker starts but is not ready.
        """

    def failure(self) -> TieredStorageError | None:
        """Return the permanent failure, such as ForeignClusterError. Thread-safe.

        Returns None while the worker works or may recover.
        """

    def is_hanging(self) -> bool:
        """Return whether a thread waits for a call that never returns.

        Thread-safe. Must not take a lock that the hanging thread may hold.
        """

    def sign_off(self) -> None:
        """Let `stop` register the process as stopped, because it was asked to stop."""

    def stop(self, *, timeout_ms: int) -> None:
        """Finish or abort the running work within `timeout_ms`.

        Idempotent; also works before `start`.
        """


class Server(Protocol):
    """Serves a worker's HTTP requests; `stop` also works before `start`."""

    def start(self) -> None:
        """Start to serve requests and return."""

    def stop(self) -> None:
        """Finish running requests. Raises RetriableError if they do not finish in time."""


class WorkerProgram(ABC):
    """Represents a kind of process: its name in logs, its HTTP address and its worker."""

    name: str

    @abstractmethod
    def listener(self, config: Config) -> HostPort:
        """Return the address of the process's HTTP server."""

    @abstractmethod
    def open(
        self, config: Config, bound: socket.socket, metrics: Metrics, stack: ExitStack
    ) -> tuple[Worker, Server]:
        """Build the worker and its HTTP server, which accepts connections at `bound`.

        Add the resources of both to `stack`, which closes them after both have stopped.
        """


def run_worker(
    program: WorkerProgram,
    load: Callable[[], Config],
    *,
    rest_fd: int | None,
    supervised: bool,
    hang_ms: int = HANG_MS,
) -> None:
    """Run a worker until a stop signal, the parent's end, or a permanent failure.

    `rest_fd` is the descriptor of an inherited listening socket; if it is None, this function binds
    a socket. On SIGHUP, it calls `load` again and applies only the new log level. Raises the
    worker's failure and the errors of `load`, `open` and `start`. Ends the process if it hangs
    (rlm.worker.hang_watch). Call only in the main thread.
    """
    with ExitStack() as stack:
        stack.enter_context(restricted_umask())
        watch = stack.enter_context(hang_watch(hang_ms))
        inbox = stack.enter_context(signal_inbox((*STOP_SIGNALS, RELOAD_SIGNAL)))
        parent_gone = threading.Event()
        if supervised:
            watch_parent(_STDIN_FD, lambda: _note_parent_gone(parent_gone, inbox))
        config = load()
        bound = open_listening_socket(
            rest_fd, program.listener(config), option="--rest-fd", key="rest.listener"
        )
        stack.callback(bound.close)
        metrics = Metrics(CollectorRegistry())
        worker, server = program.open(config, bound, metrics, stack)
        stack.callback(worker.stop, timeout_ms=STOP_TIMEOUT_MS)
        stack.callback(server.stop)
        watch.extend()
        worker.start()
        server.start()
        name, address = program.name, str(bound_address(bound))
        _log.info(LogLine("worker started", process=name, http_address=address))
        _wait_for_end(name, worker, inbox, parent_gone, load, watch)


def open_listening_socket(
    fd: int | None, listener: HostPort, *, option: str, key: str
) -> socket.socket:
    """Open the inherited socket `fd`; bind a new socket if `fd` is None.

    Raises InvalidConfigError with `option` if `fd` is invalid, with `key` if binding fails.
    """
    return (
        bind_listener(listener, key=key) if fd is None else open_inherited_socket(fd, option=option)
    )


def open_inherited_socket(fd: int, *, option: str) -> socket.socket:
    """Open the socket of an inherited descriptor. Raises InvalidConfigError with `option`."""
    try:
        os.set_inheritable(fd, False)  # noqa: FBT003 - positional only
        return socket.socket(fileno=fd)
    except OSError as error:
        raise InvalidConfigError(
            "cannot open the inherited socket", key=option, found=fd, reason=error.strerror
        ) from error


def _wait_for_end(
    name: str,
    worker: Worker,
    inbox: SignalInbox,
    parent_gone: threading.Event,
    load: Callable[[], Config],
    watch: HangWatch,
) -> None:
    while not parent_gone.is_set():
        watch.extend()
        if worker.is_hanging():
            _log.error(LogLine("ending the process, because a call does not return", process=name))
            watch.end_process()
        received = inbox.wait(_TICK_MS)
        if any(number in STOP_SIGNALS for number in received):
            worker.sign_off()
            break
        if received:
            reload_log_level(load)
        failure = worker.failure()
        if failure is not None:
            raise failure
    _log.info(LogLine("stopping the worker", process=name, parent_gone=parent_gone.is_set()))


def _note_parent_gone(parent_gone: threading.Event, inbox: SignalInbox) -> None:
    parent_gone.set()
    inbox.wake()
