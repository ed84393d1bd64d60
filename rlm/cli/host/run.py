"""`rlm run`: runs the processes next to a broker, in the foreground."""

from __future__ import annotations

import typer

from rlm.app.supervisor import supervise_host
from rlm.cli.invocation.options import ConfigOption, naming_config_check


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog="Example: rlm run --config rlm.properties")(_run)


def _run(config: ConfigOption) -> None:
    """Run the manager and the gateway next to a broker.

    Stays in the foreground. Copies and trims segments, and serves clients, until SIGTERM or Ctrl-C.
    """
    with naming_config_check(config):
        code = supervise_host(config)
    raise typer.Exit(code)
