"""Opens the gateway's TLS contexts at startup and warns about risky security settings."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from rlm.config.load import Config
from rlm.gateway.listener.tls import security_warnings, tls_towards_brokers, tls_towards_clients
from rlm.metrics.metrics import Metrics
from rlm.wire.security.settings import SecuritySettings, security_of
from rsm.segment.clock import Clock
from rsm.segment.log_line import LogLine
from rsm.system_clock import SystemClock

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTls:
    """Represents the sources of TLS contexts for new connections; None for plain text.

    Call each function from one thread.
    """

    towards_clients: Callable[[], ssl.SSLContext] | None
    towards_brokers: Callable[[], ssl.SSLContext] | None


def check_tls(config: Config) -> None:
    """Check that the TLS files can be used.

    Raises InvalidConfigError naming the key and, if a file is the cause, the file.
    """
    _tls(config, SystemClock(), lambda _side: lambda _is_good: None)


def open_tls(config: Config, clock: Clock, metrics: Metrics) -> GatewayTls:
    """Load the TLS files and log warnings about the settings. Raises the errors of `check_tls`."""

    def renewals(side: str) -> Callable[[bool], None]:
        def renewed(is_good: bool) -> None:  # noqa: FBT001 - whether the renewal succeeded
            metrics.tls_renewals.labels(side, "ok" if is_good else "failed").inc()

        return renewed

    for warning in security_warnings(config.gateway_tls, _own_security(config)):
        _log.warning(LogLine("the gateway's TLS settings may be unintended", reason=warning))
    return _tls(config, clock, renewals)


def _tls(
    config: Config, clock: Clock, renewals: Callable[[str], Callable[[bool], None]]
) -> GatewayTls:
    settings, own = config.gateway_tls, _own_security(config)
    clients = tls_towards_clients(settings, clock, renewals("client"))
    brokers = tls_towards_brokers(settings, own, clock, renewals("broker"))
    return GatewayTls(
        towards_clients=None if clients is None else clients.current,
        towards_brokers=None if brokers is None else brokers.current,
    )


def _own_security(config: Config) -> SecuritySettings:
    return security_of(config.cluster.client.librdkafka())
