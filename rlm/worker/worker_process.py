"""Runs a worker as a process: its HTTP server, its signals, its parent, and its end.

A program defines the worker and its server. This module runs a worker until a stop signal, the loss
of its supervisor, or a permanent failure.
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
"""Accepts connections of this host's own processes; the system chooses the port."""

STOP_TIMEOUT_MS = 12_000  # less than the time after which the supervisor kills the worker
HANG_MS = 120_000
_STDIN_FD = 0
_TICK_MS = 500
_log = logging.getLogger(__name__)


class Worker(Protocol):
    """Represents the work of a process."""

    def start(self) -> None:
        """Start to work and return; problems of the cluster only make the worker not ready."""

    def failure(self) -> TieredStorageError | None:
        """Return the permanent failure, such as ForeignClusterError. Thread-safe.

        None as long as the worker works or may recover.
        """

    def is_hanging(self) -> bool:
        """Return whether a thread waits for a call that never returns. Thread-safe; no locks."""

    def sign_off(self) -> None:
        """Let `stop` register that the process was asked to stop, so it does not count as dead."""

    def stop(self, *, timeout_ms: int) -> None:
        """Finish or abort the running work in time; idempotent, also without `start`."""


class Server(Protocol):
    """Serves a worker's HTTP requests; `stop` also works without `start`."""

    def start(self) -> None:
        """Start to serve and return."""

    def stop(self) -> None:
        """Finish running requests. Raises RetriableError if they do not finish in time."""


class WorkerProgram(ABC):
    """Represents what a kind of process runs: its name in logs, its address and its work."""

    name: str

    @abstractmethod
    def listener(self, config: Config) -> HostPort:
        """Return where the process answers its supervisor over HTTP."""

    @abstractmethod
    def open(
        self, config: Config, bound: socket.socket, metrics: Metrics, stack: ExitStack
    ) -> tuple[Worker, Server]:
        """Build the worker, and the server of its requests at `bound`.

        `stack` closes what both use, after they have stopped.
        """


def run_worker(
    program: WorkerProgram,
    load: Callable[[], Config],
    *,
    rest_fd: int | None,
    supervised: bool,
    hang_ms: int = HANG_MS,
) -> None:
    """Run a worker until a stop signal or the parent's end.

    `rest_fd` is an inherited listening socket; without it, this function binds a socket. On SIGHUP,
    calls `load` again and sets the log level that it returns. Raises what `load`, `open` and
    `start` raise, and the worker's failure. A process that hangs ends (rlm.worker.hang_watch). Main
    thread only.
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
    """Return the inherited socket, or bind one. Raises InvalidConfigError with option or key."""
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
            "the descriptor is not an open socket", key=option, found=fd, reason=error.strerror
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
            _log.error(LogLine("a call never returned: ending the process", process=name))
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
