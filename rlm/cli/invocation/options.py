"""Defines the options shared by commands, and loads the configuration that they name."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from rlm.broker.client_check import check_client
from rlm.broker.errors import MissingRightsError
from rlm.cli.invocation.amount_options import seconds
from rlm.cli.invocation.command_start import less_start_up
from rlm.config.load import (
    CommandConfig,
    client_command_config,
    load_command_config,
    load_storage_config,
)
from rsm.config.config_file import CONFIG_HELP, require_config_file
from rsm.config.storage import StorageConfig
from rsm.program.confirmation import YES_HELP, require_consent
from rsm.segment.errors import InvalidConfigError, RetriableError

_DEFAULT_TIMEOUT_S = 30.0

ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        metavar="FILE",
        help=CONFIG_HELP,
        default_factory=lambda: require_config_file(os.environ),
        show_default=False,
    ),
]
PartitionArgument = Annotated[
    str, typer.Argument(metavar="TOPIC[:PARTITION]", help="The topic, or one partition of it.")
]
AnyPartitionArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC[:PARTITION]",
        help="The topic, or one partition of it. By default, all tiered topics.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help=YES_HELP)]


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Represents the cluster that the user named for a command, and the command's timeout.

    The command reads the file when it takes `config`, or `store_config` if it needs no cluster.
    Both raise InvalidConfigError if the options or the file are invalid. With `needs_consent`,
    `config` also raises it if there is no terminal to ask for confirmation.
    """

    config_file: Path | None
    bootstrap_server: str | None
    command_config_file: Path | None
    timeout_ms: int
    needs_consent: bool = False

    @cached_property
    def config(self) -> CommandConfig:
        """Return the configuration of the cluster, and of the store if the file sets one."""
        require_consent(yes=not self.needs_consent, dry_run=False)
        return command_config(
            self.config_file, self.bootstrap_server, self.command_config_file, os.environ
        )

    def store_config(self) -> StorageConfig:
        """Return the store's configuration; the file need not contain any other keys."""
        if self.bootstrap_server is not None or self.command_config_file is not None:
            raise InvalidConfigError(
                "cannot use --bootstrap-server or --command-config: the command reads only a store",
                advice="Give --config FILE instead",
            )
        return load_storage_config(self.config_file or require_config_file(os.environ))


def _cluster_options(
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help=CONFIG_HELP),
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="A broker of the cluster, instead of a configuration file."
        ),
    ] = None,
    command_config_file: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Properties of the Kafka client (TLS, SASL), with --bootstrap-server.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            parser=seconds(),
            metavar="DURATION",
            help="How long to wait for the cluster; in seconds if it has no unit.",
            show_default="30s",
            callback=less_start_up,
        ),
    ] = _DEFAULT_TIMEOUT_S,
) -> ClusterOptions:
    return ClusterOptions(
        config_file=config,
        bootstrap_server=bootstrap_server,
        command_config_file=command_config_file,
        timeout_ms=round(timeout * 1000),
    )


def with_cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the cluster to a command, which takes them as `cluster`.

    They come after its own options, but before --json. The command keeps the marks of `deletes`.
    """
    own = signature(function, eval_str=True)
    shared = signature(_cluster_options, eval_str=True).parameters
    parameters = [each for name, each in own.parameters.items() if name != "cluster"]
    last = [each for each in parameters if each.name == "as_json"]
    shown = [each for each in parameters if each not in last] + [*shared.values(), *last]

    def command(**arguments: Any) -> None:  # noqa: ANN401 - what the command takes
        options = {name: arguments.pop(name) for name in shared}
        function(cluster=_cluster_options(**options), **arguments)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    vars(command).update(vars(function))
    command.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in shown}
    return command


def command_config(
    config: Path | None,
    bootstrap_server: str | None,
    command_config_file: Path | None,
    environment: Mapping[str, str],
) -> CommandConfig:
    """Return the configuration that these options name. Raises InvalidConfigError.

    `--bootstrap-server` and `--config` exclude each other, so that no command can act on another
    cluster than the one in its file. With `--bootstrap-server`, the command does not look for a
    default file.
    """
    if bootstrap_server is not None:
        if config is not None:
            raise InvalidConfigError(
                "--config and --bootstrap-server exclude each other", advice="Give one"
            )
        return client_command_config(bootstrap_server, command_config_file, check_client)
    if command_config_file is not None:
        raise InvalidConfigError(
            "--command-config has no effect without --bootstrap-server",
            advice="Give both or neither",
        )
    if config is None:
        config = require_config_file(environment, alternative="--bootstrap-server")
    with naming_config_check(config):
        return load_command_config(config, check_client)


@contextmanager
def naming_config_check(file: Path) -> Iterator[None]:
    """Extend an error about a setting with the command that reports all wrong settings.

    Without it, the user would see only the first wrong setting.
    """
    try:
        yield
    except InvalidConfigError as error:
        if "key" not in error.context:
            raise
        advice = f"`rlm config check --config {shlex.quote(str(file))}` reports all problems"
        given = error.context.get("advice")
        context = {**error.context, "advice": f"{given}. {advice}" if given else advice}
        raise type(error)(error.message, **context) from error


@contextmanager
def reaching_cluster(config: CommandConfig) -> Iterator[None]:
    """Enclose a command's first request, whose failure the user must correct.

    Converts RetriableError to InvalidConfigError, so that the command ends with exit code 2.
    """
    try:
        yield
    except RetriableError as error:
        is_refused = isinstance(error, MissingRightsError)
        raise InvalidConfigError(
            "the cluster refuses the request" if is_refused else "the cluster cannot be reached",
            bootstrap_servers=config.cluster.bootstrap_text,
            reason=error,
            advice=error.context.get("advice")
            or "Check the address, and the security settings of the Kafka client",
        ) from error
