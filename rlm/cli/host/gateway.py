"""`rlm gateway`: runs only the gateway; `rlm run` starts it next to the manager."""

from __future__ import annotations

import os
import sys

import typer

from rlm.cli.invocation.options import ConfigOption

_EXAMPLES = """Examples:

\b
  rlm gateway --config rlm.properties      # for the broker of this file
  rlm gateway --config gateway.properties  # on any host, for the cluster

\b
A gateway of the whole cluster needs only
  bootstrap.servers=broker-1:9092,broker-2:9092
  gateway.listener=0.0.0.0:19092
  gateway.advertised.listener=gateway.example.com:19092
  state.dir=/var/lib/rlm-gateway
  rsm.config.storage.filesystem.root=/mnt/store
Clients connect to port 19092 first; broker N is at 19093 + N.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gateway", epilog=_EXAMPLES)(_gateway)


def _gateway(config: ConfigOption) -> None:
    """Serve clients until SIGTERM or Ctrl-C, unsupervised.

    The gateway serves the broker of log.dirs, or the whole cluster if the file does not set
    log.dirs.
    """
    # The process becomes the gateway, so that signals to this process reach the gateway.
    command = [sys.executable, "-m", "rlm", "gateway-process", "--config", str(config)]
    os.execv(command[0], command)  # noqa: S606 - rlm itself, by this interpreter
