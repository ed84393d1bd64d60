"""Composes `rlm run`: checks, sockets, lock, children, and one optional HTTP server for all.

First reads files and binds addresses, then creates the state directory. So an invalid file or
address changes nothing on the host. Binds the listening sockets once, so that a restarted child
inherits them.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from rlm.app.startup_checks import HOST_CHECKS, host_problems
from rlm.broker.client_check import check_client
from rlm.config.effective import SecretMask, secret_settings
from rlm.config.load import Config, load_config
from rlm.config.values import HostPort
from rlm.gateway.app.open_files import raise_open_file_limit
from rlm.process.child import ChildSpec
from rlm.process.open_access import warn_of_open_access
from rlm.process.os_child import OsSpawner
from rlm.process.restart_backoff import BackoffSettings, RestartBackoff
from rlm.process.signals import RELOAD_SIGNAL, STOP_SIGNALS, SignalInbox, signal_inbox
from rlm.process.state_dir import has_lock, locked_state_dir, nearly_full_disk
from rlm.process.supervisor import ChildStatus, ProcessEvent, Supervisor
from rlm.process.umask import restricted_umask
from rlm.rest.child_probe import ChildProbe
from rlm.rest.http_server import HttpServer, bind_listener, local_address
from rlm.rest.supervisor_api import supervisor_api
from rlm.worker.client_listener import bind_closed, refuse_unserved
from rlm.worker.log_level import reload_log_level
from rlm.worker.log_lines import configure_logging
from rlm.worker.recent_log import keep_recent_log
from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError
from rsm.segment.log_line import LogLine
from rsm.system_clock import SystemClock

_TICK_MS = 200
_ANY_LOOPBACK_PORT = HostPort(host="127.0.0.1", port=0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GatewaySockets:
    """Represents the clients' socket, which all gateways share, and an HTTP socket for each."""

    clients: socket.socket
    rest: tuple[socket.socket, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ManagerSockets:
    """Represents the sockets of the manager's probe and of its API.

    If `api` is None, the manager binds that socket itself, once it knows the address from which it
    connects to its broker.
    """

    probe: socket.socket
    api: socket.socket | None


def supervise_host(config_path: Path) -> int:
    """Run the host's processes until a stop signal, or until a child's first run ends with code 2.

    Returns the exit code. Before it changes anything, raises InvalidConfigError if a file or an
    address is invalid, or HostNotReadyError if the problem may pass by itself. Call only in the
    main thread.
    """
    config = load_config(config_path, check_client)
    configure_logging(config.process.logging_level, sys.stderr)
    for check in HOST_CHECKS:
        check(config)
    warn_of_open_access(config, config_path)
    raise_open_file_limit()
    state_dir = config.host.state_dir
    nearly_full = nearly_full_disk(state_dir)
    if nearly_full is not None:
        _log.warning(LogLine(nearly_full.message, **nearly_full.context))
    with ExitStack() as stack:
        stack.enter_context(restricted_umask())
        # A lock of another supervisor is reported first: its addresses are in use, too.
        is_locked = has_lock(state_dir)
        if is_locked:
            stack.enter_context(locked_state_dir(state_dir))
        manager = _bind_manager(config, stack)
        metrics = _bind_metrics(config, stack)
        gateway = _bind_gateway(config, stack)
        if not is_locked:
            stack.enter_context(locked_state_dir(state_dir))
        keep_recent_log(state_dir, "supervisor", SecretMask(secret_settings(config_path)))
        gateways = [] if gateway is None else _gateway_specs(config_path, gateway)
        specs = (_manager_spec(config_path, manager), *gateways)
        supervisor = _supervisor(config, specs, partial(_config_problem, config_path))
        if metrics is not None:
            _serve_metrics(supervisor, metrics, stack)
        inbox = stack.enter_context(signal_inbox((*STOP_SIGNALS, RELOAD_SIGNAL, signal.SIGCHLD)))
        reload = partial(reload_log_level, lambda: load_config(config_path, check_client))
        if gateway is None:
            return supervise(supervisor, inbox, SystemClock(), reload=reload)
        refuse = partial(refuse_unserved, gateway.clients, gateways)
        return supervise(supervisor, inbox, SystemClock(), stepped=refuse, reload=reload)


def supervise(
    supervisor: Supervisor,
    inbox: SignalInbox,
    clock: Clock,
    *,
    stepped: Callable[[Sequence[ChildStatus]], None] = lambda _statuses: None,
    reload: Callable[[], bool] = lambda: False,
) -> int:
    """Call `step` until the supervisor has ended, handle signals, and return the exit code.

    A stop signal stops the children, and a second one kills them. On SIGHUP, calls `reload`; if it
    returns true, passes the signal to the children.

    `stepped` receives the statuses of all processes after each `step`. The `step` that detects the
    end of a process does not restart it; a later one may.
    """
    while True:
        for event in supervisor.step(clock.monotonic_ms()):
            _log_event(event)
        stepped(supervisor.statuses())
        if supervisor.has_ended:
            return supervisor.exit_code
        for number in inbox.wait(_TICK_MS):
            if number in STOP_SIGNALS:
                _log.info(LogLine("stopping", signal=signal.Signals(number).name))
                supervisor.stop(clock.monotonic_ms())
            elif number == RELOAD_SIGNAL and reload():
                supervisor.reload()


def _supervisor(
    config: Config, specs: tuple[ChildSpec, ...], config_problem: Callable[[], str]
) -> Supervisor:
    settings = BackoffSettings(
        initial_ms=config.process.restart_backoff_ms,
        max_ms=config.process.restart_backoff_max_ms,
    )
    random = Random()
    return Supervisor(
        specs,
        OsSpawner(),
        lambda: RestartBackoff(settings, random),
        config_problem=config_problem,
    )


def _config_problem(config_path: Path) -> str:
    """Return the first error of the current file, else of the host; empty if there is none."""
    try:
        return next((str(problem) for problem in host_problems(config_path)), "")
    except InvalidConfigError as error:  # The file cannot be read.
        return str(error)


def _bind_manager(config: Config, stack: ExitStack) -> _ManagerSockets:
    listener = config.process.rest_listener
    api = None
    if listener is not None:
        api = stack.enter_context(closing(bind_listener(listener, key="rest.listener")))
    probe = bind_listener(_ANY_LOOPBACK_PORT, key="manager's metrics")
    return _ManagerSockets(probe=stack.enter_context(closing(probe)), api=api)


def _manager_spec(config_path: Path, sockets: _ManagerSockets) -> ChildSpec:
    probe = sockets.probe.fileno()
    options = ["--config", str(config_path), "--probe-fd", str(probe), "--supervised"]
    fds = [probe]
    if sockets.api is not None:
        fds.append(sockets.api.fileno())
        options += ["--rest-fd", str(sockets.api.fileno())]
    return ChildSpec(
        name="manager",
        command=(sys.executable, "-m", "rlm", "manager-process", *options),
        inherited_fds=tuple(fds),
        http_address=str(local_address(sockets.probe)),
    )


def _bind_gateway(config: Config, stack: ExitStack) -> _GatewaySockets | None:
    listener = config.gateway.listener
    if listener is None:
        return None
    clients = bind_closed(listener, key="gateway.listener")
    stack.enter_context(closing(clients))
    rest = [
        stack.enter_context(closing(bind_listener(_ANY_LOOPBACK_PORT, key="gateway's HTTP API")))
        for _ in range(config.gateway.worker_count)
    ]
    return _GatewaySockets(clients=clients, rest=tuple(rest))


def _gateway_specs(config_path: Path, sockets: _GatewaySockets) -> list[ChildSpec]:
    """Return the spec of each gateway process; a single process is named `gateway`."""
    command = (sys.executable, "-m", "rlm", "gateway-process", "--config", str(config_path))
    clients_fd = sockets.clients.fileno()
    specs = []
    for worker, rest in enumerate(sockets.rest, start=1):
        options = ("--gateway-fd", str(clients_fd), "--rest-fd", str(rest.fileno()))
        specs.append(
            ChildSpec(
                name="gateway" if len(sockets.rest) == 1 else f"gateway-{worker}",
                command=(*command, *options, "--worker", str(worker), "--supervised"),
                inherited_fds=(clients_fd, rest.fileno()),
                http_address=str(local_address(rest)),
            )
        )
    return specs


def _bind_metrics(config: Config, stack: ExitStack) -> socket.socket | None:
    listener: HostPort | None = config.process.metrics_listener
    if listener is None:
        return None
    return stack.enter_context(closing(bind_listener(listener, key="metrics.listener")))


def _serve_metrics(supervisor: Supervisor, bound: socket.socket, stack: ExitStack) -> None:
    server = HttpServer(
        supervisor_api(supervisor.statuses, ChildProbe()), bound, name="metrics-http"
    )
    stack.callback(server.stop)
    server.start()
    _log.info(LogLine("serving metrics", address=str(local_address(bound))))


def _log_event(event: ProcessEvent) -> None:
    level = logging.WARNING if event.needs_action else logging.INFO
    _log.log(level, LogLine(event.message, child=event.process, **dict(event.fields)))
