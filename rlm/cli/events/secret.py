"""`rlm secret`: replaces the secret that signs requests between managers and commands."""

from __future__ import annotations

import secrets
from uuid import uuid4

import typer

from rlm.cli.invocation.options import ClusterOptions, with_cluster_options
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import open_session
from rlm.operator.cluster_secret import SecretWriter
from rlmm.events.secret import PREVIOUS_VALID_MS, ClusterSecretSet
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
    """Replace the secret that signs requests and responses.

    Managers and commands sign with it. The old secret stays valid for 10 minutes, so that no
    request fails. Rotate the secret after you revoke somebody's right to read the metadata topic. A
    second rotation within 10 minutes makes the oldest secret invalid at once.
    """
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        written = SecretWriter(session.metadata, uuid4, secrets.token_bytes).rotate()
    with printing():
        typer.echo(rotated_text(written))


def rotated_text(written: ClusterSecretSet) -> str:
    """Return the output for a new secret: its id, and how long the old secret stays valid."""
    text = f"secret {id_to_text(written.current.secret_id)} is set"
    if written.previous is None:
        return f"{text}; there was none before"
    return f"{text}; the old one is valid for {PREVIOUS_VALID_MS // _MINUTE_MS} min"
