"""Options that commands share, and the configuration they add up to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rlm.broker.client_check import check_client
from rlm.cli.command_start import less_start_up
from rlm.config.load import CommandConfig, client_command_config, load_command_config
from rsm.segment.errors import InvalidConfigError, RetriableError

DEFAULT_TIMEOUT_S = 30.0

ConfigOption = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="The configuration file.")
]
CommandConfigFileOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The configuration file of `rlm run`."),
]
BootstrapServerOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="The cluster, where there is no --config."),
]
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="With --bootstrap-server: properties of the Kafka client (TLS, SASL).",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        min=0.1,
        metavar="SECONDS",
        help="How long to wait for the cluster.",
        callback=less_start_up,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def command_config(
    config: Path | None, bootstrap_server: str | None, command_config_file: Path | None
) -> CommandConfig:
    """The configuration that these options give. InvalidConfigError.

    `--bootstrap-server` and `--config` exclude each other, so that no command can act on another
    cluster than its file names.
    """
    if (config is None) == (bootstrap_server is None):
        raise InvalidConfigError("give either --config or --bootstrap-server")
    if config is not None:
        if command_config_file is not None:
            raise InvalidConfigError("--command-config goes with --bootstrap-server")
        return load_command_config(config, check_client)
    return client_command_config(str(bootstrap_server), command_config_file, check_client)


@contextmanager
def reaching_cluster(config: CommandConfig) -> Iterator[None]:
    """For a command's first contact: a cluster that can't be reached is the user's to mend.

    Turns RetriableError into InvalidConfigError, which ends a command with exit code 2.
    """
    try:
        yield
    except RetriableError as error:
        raise InvalidConfigError(
            "cluster can't be reached",
            bootstrap_servers=config.cluster.bootstrap_text,
            reason=error,
        ) from error
