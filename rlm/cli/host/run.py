"""`rlm run`: runs the processes next to a broker, in the foreground."""

from __future__ import annotations

import typer

from rlm.app.supervisor import supervise_host
from rlm.cli.invocation.options import ConfigOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog="Example: rlm run --config rlm.properties")(_run)


def _run(config: ConfigOption) -> None:
    """Run manager and gateway next to a broker, in the foreground.

    Copies, trims and serves until SIGTERM or Ctrl-C.
    """
    raise typer.Exit(supervise_host(config))
