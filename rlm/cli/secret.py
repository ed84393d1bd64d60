"""`rlm secret`: the secret that signs what managers and commands say to each other."""

from __future__ import annotations

import secrets
from uuid import uuid4

import typer

from rlm.cli.options import ClusterOptions, with_cluster_options
from rlm.cli.output import printing
from rlm.cli.session import open_session
from rlm.tasks.cluster_secret import SecretWriter
from rlmm.secrets import PREVIOUS_VALID_MS
from rsm.segment.ids import id_to_text

_MINUTE_MS = 60_000


def register(app: typer.Typer) -> None:
    """Add the commands."""
    secret = typer.Typer(
        help="Replace the secret that signs HTTP requests.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    secret.callback()(_group)
    secret.command("rotate", help=_rotate.__doc__, epilog="Example: rlm secret rotate")(_rotate)
    app.add_typer(secret, name="secret")


def _group() -> None:
    """Replace the secret that signs HTTP requests."""


@with_cluster_options
def _rotate(*, cluster: ClusterOptions) -> None:
    """Replace the secret with which managers and commands sign.

    The old secret stays valid for 10 minutes, so that nothing is interrupted. Rotate when somebody
    who could read the metadata topic no longer may. Running it twice ends the old one at once.
    """
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        secret_id = SecretWriter(session.metadata, uuid4, secrets.token_bytes).rotate()
    minutes = PREVIOUS_VALID_MS // _MINUTE_MS
    with printing():
        typer.echo(f"secret {id_to_text(secret_id)} is set; the old one is valid for {minutes} min")
