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
    """Mark a command that deletes or releases what the cluster has.

    `with_any` are names of parameters; if there are any, the command deletes only with one of them.
    Use it below `with_cluster_options`. Without a terminal, --yes or --dry-run, the command ends
    when it takes the configuration: after it has checked its arguments, before it connects.
    Otherwise it calls `confirm` when it knows what it deletes. Raises TypeError for a command
    without these options.
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

        command.deletes_with = with_any  # type: ignore[attr-defined]  # a mark of this module
        return command

    return mark


def confirm_loss(
    session: CommandSession, lines: Iterable[str], question: str, *, yes: bool
) -> CommandSession:
    """If there are lines, which say what is lost, show them and ask.

    Returns the session to continue with: the time until the answer does not count. Raises as
    `confirm` does.
    """
    shown = tuple(lines)
    if not shown:
        return session
    remaining_ms = session.remaining_ms()
    require_consent(yes=yes, dry_run=False, reason=shown[0])
    confirm("\n".join([*shown, question]), yes=yes)
    return session.with_remaining(remaining_ms)


def can_delete(command: Callable[..., None] | None) -> bool:
    """Return whether a command is marked."""
    return hasattr(command, "deletes_with")
