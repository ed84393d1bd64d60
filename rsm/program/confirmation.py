"""Asks before a command or a Spark job deletes data or accepts its loss.

One rule for all programs:

    --dry-run            shows what would happen; asks nothing, changes nothing
    --yes                acts without a question
    on a terminal        asks on standard error; every answer but y and yes changes nothing
    without a terminal   refuses; does not even connect if the arguments show the deletion

A shorter retention and `--force` count as deletions. If there is no terminal, a command that loses
no data acts without a question (`confirm_on_terminal`). Schedulers and `spark-submit` give a job no
terminal, so jobs that delete need `--yes` there.
"""

from __future__ import annotations

import sys

from rsm.segment.errors import InvalidConfigError, StoppedError

YES_HELP = "Do not ask for confirmation."


def require_consent(*, yes: bool, dry_run: bool, reason: str | None = None) -> None:
    """Raise InvalidConfigError if the command needs an answer and there is no terminal.

    `reason` says what would be lost.
    """
    if not (yes or dry_run or _has_terminal()):
        raise InvalidConfigError(
            "cannot ask for confirmation without a terminal",
            reason=reason,
            advice="Check the effect with --dry-run, then pass --yes",
        )


def confirm(question: str, *, yes: bool) -> None:
    """Ask unless `yes`.

    Raises StoppedError for any answer except y and yes, and the errors of `require_consent`.
    """
    require_consent(yes=yes, dry_run=False)
    confirm_on_terminal(question, yes=yes)


def confirm_on_terminal(question: str, *, yes: bool) -> None:
    """Ask if there is a terminal, unless `yes`. Raises StoppedError as `confirm` does."""
    if yes or not _has_terminal():
        return
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if not _is_yes():
        raise StoppedError(
            "nothing was changed, because the change was not confirmed",
            advice="Answer y, or pass --yes",
        )


def _is_yes() -> bool:
    """Read the answer; one that cannot be decoded is not a yes."""
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except UnicodeDecodeError:
        return False


def _has_terminal() -> bool:
    # A stream is None if it was closed when the process started.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
