"""Marks the commands that delete, and applies the rule of rsm.program.confirmation to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any

from rlm.cli.invocation.session import CommandSession
from rsm.program.confirmation import confirm, require_consent

_NEEDED = frozenset({"cluster", "dry_run", "yes"})


def deletes(*with_any: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a command that deletes data, records or policies, or releases leases.

    If `with_any` names parameters, the command deletes only if one of them is set. Apply this
    decorator below `with_cluster_options`. If there is no terminal, --yes or --dry-run, the command
    fails when it takes the configuration: after it has checked its arguments, before it connects.
    Otherwise it must call `confirm` when it knows what it deletes. Raises TypeError if the command
    lacks one of the parameters.
    """

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        if missing := _NEEDED.union(with_any) - signature(function).parameters.keys():
            raise TypeError(f"{function.__name__} deletes, but does not take {sorted(missing)}")

        @wraps(function)
        def command(**arguments: Any) -> None:  # noqa: ANN401 - what the command takes
            is_deletion = not with_any or any(arguments[each] for each in with_any)
            needs_consent = is_deletion and not (arguments["yes"] or arguments["dry_run"])
            cluster = replace(arguments.pop("cluster"), needs_consent=needs_consent)
            function(cluster=cluster, **arguments)

        command.deletes_with = with_any  # type: ignore[attr-defined]  # set and read only here
        return command

    return mark


def confirm_loss(
    session: CommandSession, lines: Iterable[str], question: str, *, yes: bool
) -> CommandSession:
    """Show `lines` about the loss, and ask; do nothing if there are none.

    Returns the session to continue with, whose timeout excludes the wait for the answer. Raises the
    errors of `confirm`.
    """
    shown = tuple(lines)
    if not shown:
        return session
    remaining_ms = session.remaining_ms()
    require_consent(yes=yes, dry_run=False, reason=shown[0])
    confirm("\n".join([*shown, question]), yes=yes)
    return session.with_remaining(remaining_ms)


def can_delete(command: Callable[..., None] | None) -> bool:
    """Return whether `deletes` marks a command."""
    return hasattr(command, "deletes_with")
