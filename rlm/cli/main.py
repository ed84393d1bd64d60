"""Defines the command `rlm` and its subcommands. rlm.cli.invocation.ending sets exit codes."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rlm.cli.invocation.ending import run_app
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.readable_command import ReadableGroup, readable_help

_DISTRIBUTION = "kafka-rlm"


@dataclass(frozen=True, slots=True)
class CommandSource:
    """Represents a command before its import: its module in rlm.cli, and its line in the help."""

    module: str
    summary: str


COMMANDS: Mapping[str, CommandSource] = MappingProxyType(
    {
        "run": CommandSource("host.run", "Run the manager and the gateway next to a broker."),
        "gateway": CommandSource(
            "host.gateway", "Serve clients until SIGTERM or Ctrl-C, unsupervised."
        ),
        "topic": CommandSource("topics.topic", "Tier topics, change their policies, end tiering."),
        "policy": CommandSource(
            "policies.policy", "Set policies of many topics, by patterns and a default."
        ),
        "apply": CommandSource(
            "policies.apply", "Set the policies of patterns and topics from a file."
        ),
        "status": CommandSource(
            "reading.status", "Show problems, what is stored, and the copy lag."
        ),
        "processes": CommandSource(
            "host.processes", "List brokers, managers and gateways, and their readiness."
        ),
        "explain": CommandSource(
            "reading.explain", "Show where a record is, and what keeps its local copy."
        ),
        "read": CommandSource("reading.read", "Print the records of a partition from both tiers."),
        "segments": CommandSource(
            "segments.segments", "List stored segments, or delete streamed ones."
        ),
        "offload": CommandSource(
            "topics.offload", "Store all rolled segments now, without any copy lag."
        ),
        "offload-status": CommandSource(
            "topics.offload_status", "Show the progress of a requested offload."
        ),
        "pause": CommandSource("topics.pause", "Pause copies, trims or deletions of a topic."),
        "resume": CommandSource(
            "topics.pause", "Resume paused copies, trims or deletions of a topic."
        ),
        "retention": CommandSource("topics.retention", "Expire data past its retention."),
        "leases": CommandSource("topics.leases", "List or release read leases."),
        "dlq": CommandSource("events.dlq", "List and retry failed deletions of stored objects."),
        "metadata": CommandSource(
            "events.metadata", "Print records of a metadata topic, or audit Kafka's own."
        ),
        "blocks": CommandSource(
            "stores.blocks", "Inspect, read and write ledgers of Apache Pulsar."
        ),
        "storage": CommandSource("stores.storage", "Check the store."),
        "plugins": CommandSource("stores.plugins", "List installed plug-ins."),
        "check": CommandSource("host.check", "Check that all parts of the cluster work together."),
        "config": CommandSource("host.config", "Check or show a configuration file."),
        "debug": CommandSource("host.debug", "Collect what a bug report needs."),
        "secret": CommandSource("events.secret", "Replace the secret that signs HTTP requests."),
        "uninstall": CommandSource(
            "topics.uninstall", "End all topics' tiering, and restore their own retention."
        ),
    }
)
"""The commands, in the order of the help."""

_PROCESS_MODULES: Mapping[str, str] = MappingProxyType(
    {"manager-process": "host.manager", "gateway-process": "host.gateway_program"}
)
"""Commands that the supervisor and `rlm gateway` start; the help does not show them."""

_COMPLETION_HELP: Mapping[str, str] = MappingProxyType(
    {
        "install_completion": "Install completion for this shell.",
        "show_completion": "Print the completion script of this shell.",
    }
)


class _Commands(ReadableGroup):
    """Represents the commands of `rlm`; imports a module only when its command is used.

    Importing all modules takes seconds. `commands` contains only names and summaries, for the help
    and for suggestions.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - typer's type is private
        super().__init__(**settings)
        for name, source in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=source.summary)

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer's type is private
        """Return the options, with a shorter help of the completion options."""
        params: list[Any] = [*super().get_params(ctx)]
        for param in params:
            if param.name in _COMPLETION_HELP:
                param.help = _COMPLETION_HELP[param.name]
        return params

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's type is private
        """Write the names and summaries."""
        TyperGroup(commands=dict(self.commands)).format_commands(ctx, formatter)

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401 - typer's type is private
        """Import and return the command; None for an unknown name."""
        source = COMMANDS.get(cmd_name)
        module = _PROCESS_MODULES.get(cmd_name) if source is None else source.module
        if module is None:
            return None
        command = _registered(module)[cmd_name]
        _collect_garbage_from_here()
        return command


def _registered(module: str) -> Mapping[str, Any]:
    app = typer.Typer(rich_markup_mode=None)
    importlib.import_module(f"rlm.cli.{module}").register(app)
    readable_help(app)
    return typer.main.get_group(app).commands


def _collect_garbage_from_here() -> None:
    """Enable garbage collection, which `main` disabled; exclude the imported objects."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def main() -> None:
    """Run the command line of this process and exit."""
    # Imports create no garbage, and take a sixth less time without its collection.
    gc.disable()
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
