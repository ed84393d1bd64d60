"""Checks the configuration and the host before `rlm run` binds addresses or starts processes.

The checks only read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlm.broker.client_check import check_client
from rlm.config.load import Config, config_problems, load_config
from rlm.gateway.app.security import check_tls
from rlm.process.host_check import check_host, directory_problems
from rlm.tls.http_tls import server_context
from rlm.worker.plugin_check import check_plugins
from rsm.segment.errors import InvalidConfigError
from rsm.system_clock import SystemClock


def host_problems(config_path: Path) -> tuple[InvalidConfigError, ...]:
    """Return all errors of the configuration file; if it has none, those of the host.

    For the host, these are all errors of its directories, then the first error of each other check:
    plug-ins, the gateway's TLS files, the HTTP API's TLS files. Raises InvalidConfigError if the
    configuration file cannot be read.
    """
    found = config_problems(config_path, check_client)
    if found:
        return found
    config = load_config(config_path)
    others = (problem for check in _FILE_CHECKS if (problem := _problem(check, config)))
    return (*directory_problems(config), *others)


def _problem(check: Callable[[Config], object], config: Config) -> InvalidConfigError | None:
    try:
        check(config)
    except InvalidConfigError as error:
        return error
    return None


def _check_gateway_tls(config: Config) -> None:
    if config.gateway.listener is not None:
        check_tls(config)


def _check_http_tls(config: Config) -> None:
    server_context(config.rest_tls, SystemClock())


_FILE_CHECKS: tuple[Callable[[Config], object], ...] = (
    check_plugins,
    _check_gateway_tls,
    _check_http_tls,
)
HOST_CHECKS: tuple[Callable[[Config], object], ...] = (*_FILE_CHECKS, check_host)
"""The checks of plug-ins and TLS files, then of the host's directories.

Each raises InvalidConfigError. The check of the directories comes last, because its error may be
temporary, for example because a disk is not mounted yet.
"""
