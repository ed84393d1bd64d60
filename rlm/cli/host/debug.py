"""`rlm debug`: collects in one archive what a bug report needs."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shlex
import ssl
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rlm.broker.client_check import check_client
from rlm.cli.host.bundle_archive import PART_MAX_BYTES, TOTAL_MAX_BYTES, BundleArchive
from rlm.cli.invocation.amounts import size_text
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.managers import ask_each, live_managers, registered_live
from rlm.cli.invocation.options import ConfigOption
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import open_session
from rlm.cli.terminal.lines import print_lines
from rlm.config.effective import effective_settings, secret_settings
from rlm.config.load import load_command_config, load_gateway_config
from rlm.config.values import HostPort
from rlm.rest.http_exchange import HttpExchange
from rlm.worker.recent_log import (
    FILE_MAX_BYTES,
    TEXT_MAX_BYTES,
    logged_processes,
    recent_log,
)
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rsm.segment.errors import InvalidConfigError, RetriableError, TieredStorageError

_CLUSTER_TIMEOUT_S = 15
_PART_TIMEOUT_S = 60.0
_DISTRIBUTIONS = ("kafka-rlm", "confluent-kafka", "rocksdict", "boto3", "httpx", "pydantic")
_README = """A bundle of `rlm debug bundle`, written at {time}.

versions.json     versions of rlm, Python, its libraries and the system
config.json       every setting, as `rlm config show --json`; secrets are masked
config-check.json problems of the file, as `rlm config check --json`
status.json       all tiered partitions, as `rlm status --json`
processes.json    all processes and their readiness, as `rlm processes --all --json`
host/             metrics and readiness at metrics.listener of this host
host/log/         the last log lines of each process of state.dir, even if it has ended
managers/, gateways/   metrics of the live processes that answer, by broker id and process id
managers/ID.log.txt    the last log lines of all processes of that manager's host
NAME.error.txt    the error of a part that could not be obtained
manifest.txt      all parts, with their sizes and errors

Each part has at most {part}; all parts together have at most {total}. The last line of a part that
was cut begins with "(cut".

Log lines are the last {log} of each process of this host, and the last {text} of all processes of
another host. rlm writes all lines to standard error. If older lines matter, add the log of your
service manager, for example the output of `journalctl --unit UNIT --since -1h`. That log also
contains what a process writes before it opens its own log, such as a configuration error.
"""

_Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE.tar.gz",
        help="The file to create; by default rlm-debug-TIME.tar.gz in the current directory.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    debug = typer.Typer(help="Collect what a bug report needs.", no_args_is_help=True)
    debug.callback()(_debug)
    debug.command(
        "bundle", epilog="Example: rlm debug bundle --config rlm.properties --out rlm.tar.gz"
    )(_bundle)
    app.add_typer(debug, name="debug")


def _debug() -> None:
    """Collect what a bug report needs."""


def _bundle(*, config: ConfigOption, out: _Out = None) -> None:
    """Write settings, status, metrics and logs to an archive.

    Adds versions, and masks the secrets of the configuration. The names of topics, hosts and users
    stay visible: inspect the archive before you send it. If a part cannot be obtained, the archive
    contains its error instead. Logs are the last lines of the processes of this host, and of the
    hosts whose managers answer.
    """
    now = datetime.now(UTC)
    path = out or Path(f"rlm-debug-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    secrets = secret_settings(config)
    with closing(BundleArchive(path, secrets)) as archive:
        collect(archive, config, now)
    show_bundle(archive.contents, path)


def show_bundle(contents: Iterable[str], path: Path) -> None:
    """Print the parts, and the path unwrapped on its own line."""
    with printing():
        print_lines(contents)
        typer.echo(path)


def collect(archive: BundleArchive, config: Path, now: datetime) -> None:
    """Add all parts."""
    archive.add("README.txt", _readme(now).encode)
    archive.add("versions.json", _versions)
    archive.add("config.json", partial(_settings, config))
    commands = {
        "config-check": ("config", "check"),
        "status": ("status", "--timeout", str(_CLUSTER_TIMEOUT_S)),
        "processes": ("processes", "--all", "--timeout", str(_CLUSTER_TIMEOUT_S)),
    }
    for name, arguments in commands.items():
        typer.echo(f"collecting {name}", err=True)
        archive.add(f"{name}.json", partial(_output_of, *arguments, config=config))
    typer.echo("collecting metrics", err=True)
    for path in ("metrics", "readyz"):
        archive.add(f"host/{path}.txt", partial(_of_this_host, config, path))
    typer.echo("collecting logs", err=True)
    add_host_logs(archive, config)
    typer.echo("collecting metrics and logs of live processes", err=True)
    try:
        for name, content in _answers(config):
            archive.add(name, partial(_content, content))
    except TieredStorageError as error:
        archive.add("managers", partial(_content, error))


def add_host_logs(archive: BundleArchive, config: Path) -> None:
    """Add the last log lines of each process of this host's `state.dir`."""
    try:
        state_dir = load_gateway_config(config).host.state_dir
        processes = logged_processes(state_dir)
    except TieredStorageError as error:
        archive.add("host/log", partial(_content, error))
        return
    for process in processes:
        archive.add(f"host/log/{process}.log", partial(recent_log, state_dir, process))


def _readme(now: datetime) -> str:
    return _README.format(
        time=now.isoformat(timespec="seconds"),
        part=size_text(PART_MAX_BYTES),
        total=size_text(TOTAL_MAX_BYTES),
        log=size_text(2 * FILE_MAX_BYTES),
        text=size_text(TEXT_MAX_BYTES),
    )


def _content(content: bytes | TieredStorageError) -> bytes:
    if isinstance(content, TieredStorageError):
        raise content
    return content


def _versions() -> bytes:
    installed = {each.name: each.version for each in importlib.metadata.distributions()}
    document = {
        "python": sys.version,
        "system": platform.platform(),
        "openssl": ssl.OPENSSL_VERSION,
        "distributions": {name: installed.get(name) for name in _DISTRIBUTIONS},
    }
    return json.dumps(document, indent=2).encode()


def _settings(config: Path) -> bytes:
    settings = [each.to_json() for each in effective_settings(config)]
    return json.dumps({"file": str(config), "settings": settings}, indent=2).encode()


def _output_of(*arguments: str, config: Path) -> bytes:
    """Run a command in a subprocess, which a timeout can end; return its JSON output."""
    options = [*arguments, "--json", "--config", str(config)]
    command, typed = [sys.executable, "-m", "rlm", *options], shlex.join(["rlm", *options])
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PART_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RetriableError(
            "the command did not end in time",
            timeout_s=error.timeout,
            advice=f"Run it in a terminal: `{typed}`",
        ) from error
    if not done.stdout:
        printed = " ".join(done.stderr[-PART_MAX_BYTES:].decode(errors="replace").split())
        reported = printed.removeprefix("rlm: ").removesuffix(".")
        raise RetriableError(
            "the command failed",
            command=typed,
            exit_code=done.returncode,
            advice=f"It reported: {reported}" if reported else "Run it in a terminal",
        )
    return done.stdout


def _of_this_host(config: Path, path: str) -> bytes:
    listener = load_gateway_config(config).process.metrics_listener
    if listener is None:
        raise InvalidConfigError(
            "cannot collect this host's metrics: metrics.listener is not set",
            advice="Set it, and restart `rlm`",
        )
    host = "127.0.0.1" if listener.is_unspecified else listener.host
    address = HostPort(host=host, port=listener.port)
    with closing(HttpExchange()) as exchange:
        return exchange.read(str(address), f"/{path}")


def _answers(config: Path) -> Iterator[tuple[str, bytes | TieredStorageError]]:
    """Yield the metrics and logs, or the error, of each live manager and gateway."""
    settings = load_command_config(config, check_client)
    with (
        open_session(settings, timeout_ms=_CLUSTER_TIMEOUT_S * 1000) as session,
        closing(manager_client(session)) as client,
        closing(HttpExchange()) as exchange,
    ):
        managers = live_managers(session.metadata, session.clock)
        gateways = registered_live(session.metadata, session.clock, ProcessRole.GATEWAY)
        yield from _named("managers", "metrics", ask_each(managers, client.metrics))
        yield from _named("gateways", "metrics", ask_each(gateways, partial(_metrics, exchange)))
        yield from _named("managers", "log", ask_each(managers, client.logs))
        yield from _named("gateways", "log", _without_manager(gateways, managers))


def _metrics(exchange: HttpExchange, gateway: ProcessRegistered) -> bytes:
    return exchange.read(gateway.http_address, "/metrics")


def _without_manager(
    gateways: Iterable[ProcessRegistered], managers: Iterable[ProcessRegistered]
) -> Iterator[tuple[ProcessRegistered, TieredStorageError]]:
    """Yield an error for each gateway whose log no manager can send.

    Gateways have no signed API, so a manager of the same broker sends their logs.
    """
    with_manager = {each.broker_id for each in managers}
    for gateway in gateways:
        if gateway.broker_id not in with_manager:
            yield (
                gateway,
                RetriableError(
                    "cannot collect the gateway's log: no live manager of its host can send it",
                    advice="Also run `rlm debug bundle` on the gateway's host",
                ),
            )


def _named(
    folder: str,
    what: str,
    answers: Iterable[tuple[ProcessRegistered, bytes | TieredStorageError]],
) -> Iterator[tuple[str, bytes | TieredStorageError]]:
    for process, answer in answers:
        name = f"{process.broker_id}-{process.process_id.hex[:8]}"
        yield f"{folder}/{name}.{what}.txt", answer
