"""The manager as a process: its HTTP server, its signals, its parent, and its end.

What a manager does is rlm.app's matter; this module runs one until it is told to stop, loses its
supervisor, or finds that it can't be right.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from prometheus_client import CollectorRegistry

from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.metrics import Metrics
from rlm.process.parent_watch import watch_parent
from rlm.process.signals import STOP_SIGNALS, SignalInbox, signal_inbox
from rlm.rest.http_server import HttpServer, bind_listener, reachable_address
from rlm.rest.manager_api import ManagerView, manager_api
from rsm.segment.errors import InvalidConfigError, TieredStorageError

STOP_TIMEOUT_MS = 12_000  # less than the supervisor waits before it kills
_STDIN_FD = 0
_TICK_MS = 500
_log = logging.getLogger(__name__)


class Manager(ManagerView, Protocol):
    """What this module runs; built by rlm.app."""

    def start(self) -> None:
        """Begin to work and return; what only the cluster can tell makes it not ready."""

    def failure(self) -> TieredStorageError | None:
        """Why it can never work, for good: InvalidConfigError for a foreign cluster. Thread-safe.

        None as long as it works or may yet.
        """

    def stop(self, *, timeout_ms: int) -> None:
        """Finish or give up what is under way, in time; idempotent, also without `start`."""


ManagerBuilder = Callable[[Config, HostPort, Metrics], Manager]


def run_manager(
    load: Callable[[], Config], build: ManagerBuilder, *, rest_fd: int | None, supervised: bool
) -> None:
    """Run a manager until a stop signal or the parent's end.

    `build` is given the address that its HTTP API is reached at. `rest_fd` is an inherited
    listening socket; without it `rest.listener` is bound. Raises what `load`, `build` and `start`
    raise, and the manager's failure. Main thread only.
    """
    with ExitStack() as stack:
        inbox = stack.enter_context(signal_inbox(STOP_SIGNALS))
        parent_gone = threading.Event()
        if supervised:
            watch_parent(_STDIN_FD, lambda: _note_parent_gone(parent_gone, inbox))
        config = load()
        bound = _rest_socket(config, rest_fd)
        stack.callback(bound.close)
        metrics = Metrics(CollectorRegistry())
        manager = build(config, reachable_address(bound), metrics)
        stack.callback(manager.stop, timeout_ms=STOP_TIMEOUT_MS)
        server = HttpServer(manager_api(manager, metrics.registry), bound, name="manager-http")
        stack.callback(server.stop)
        manager.start()
        server.start()
        _log.info("manager started", extra={"http_address": str(reachable_address(bound))})
        _wait_for_end(manager, inbox, parent_gone)


def _wait_for_end(manager: Manager, inbox: SignalInbox, parent_gone: threading.Event) -> None:
    while not parent_gone.is_set() and not inbox.wait(_TICK_MS):
        failure = manager.failure()
        if failure is not None:
            raise failure
    _log.info("manager stops", extra={"parent_gone": parent_gone.is_set()})


def _note_parent_gone(parent_gone: threading.Event, inbox: SignalInbox) -> None:
    parent_gone.set()
    inbox.wake()


def _rest_socket(config: Config, rest_fd: int | None) -> socket.socket:
    if rest_fd is None:
        return bind_listener(config.process.rest_listener, key="rest.listener")
    try:
        os.set_inheritable(rest_fd, False)  # noqa: FBT003 - positional only
        return socket.socket(fileno=rest_fd)
    except OSError as error:
        raise InvalidConfigError(
            "not a listening socket", key="--rest-fd", found=rest_fd, reason=error.strerror
        ) from error
