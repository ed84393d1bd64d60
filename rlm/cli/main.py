"""The command `rlm` and its subcommands; rlm.cli.invocation.ending sets their exit codes."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rlm.cli.invocation.ending import run_app
from rlm.cli.invocation.output import printing

_DISTRIBUTION = "kafka-rlm"
COMMAND_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "run": "host.run",
        "gateway": "host.gateway",
        "topic": "topics.topic",
        "status": "reading.status",
        "processes": "host.processes",
        "explain": "reading.explain",
        "read": "reading.read",
        "segments": "reading.segments",
        "offload": "topics.offload",
        "offload-status": "topics.offload_status",
        "pause": "topics.pause",
        "resume": "topics.pause",
        "retention": "topics.retention",
        "leases": "topics.leases",
        "dlq": "events.dlq",
        "metadata": "events.metadata",
        "blocks": "stores.blocks",
        "storage": "stores.storage",
        "plugins": "stores.plugins",
        "check": "host.check",
        "config": "host.config",
        "debug": "host.debug",
        "secret": "events.secret",
        "uninstall": "topics.uninstall",
    }
)
"""The module of rlm.cli that registers each command, in the order of the help."""


_COMPLETION_HELP: Mapping[str, str] = MappingProxyType(
    {
        "install_completion": "Install completion for this shell.",
        "show_completion": "Print the completion script of this shell.",
    }
)


class _Commands(TyperGroup):
    """Imports a command's module only when it is used: importing all takes a second."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer's is private
        """Return the options; those of the completion get a short help."""
        params: list[Any] = [*super().get_params(ctx)]
        for param in params:
            if param.name in _COMPLETION_HELP:
                param.help = _COMPLETION_HELP[param.name]
        return params

    def list_commands(self, ctx: object) -> list[str]:
        return list(COMMAND_MODULES)

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401 - typer's is private
        """Return the command, or None; then all commands are loaded, so that typer suggests one."""
        for name in (cmd_name,) if cmd_name in COMMAND_MODULES else COMMAND_MODULES:
            if name not in self.commands:
                self.commands.update(_registered(COMMAND_MODULES[name]))
        return self.commands.get(cmd_name)


def _registered(module: str) -> Mapping[str, Any]:
    app = typer.Typer(rich_markup_mode=None)
    importlib.import_module(f"rlm.cli.{module}").register(app)
    return typer.main.get_group(app).commands


def main() -> None:
    """Run the command line of this process and exit."""
    run_app(build_app())


def _print_version(asked: bool) -> None:
    if asked:
        with printing():
            typer.echo(f"rlm {importlib.metadata.version(_DISTRIBUTION)}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """Build the application with all its commands."""
    app = typer.Typer(
        name="rlm",
        cls=_Commands,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    return app


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_print_version,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Tiered storage for any Apache Kafka cluster, from outside the broker."""
