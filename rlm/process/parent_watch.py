"""Watches the supervisor's pipe in a child, and ends the child once the parent is gone.

Nothing is ever written to the pipe; end of file means that the supervisor ended, even by kill -9.
The child then stops cleanly within CLEAN_STOP_MS, or exits: a child without a supervisor must not
serve a broker together with its successor.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

# A child may notice the end only after its interpreter has started. Even then, it exits within 5 s.
CLEAN_STOP_MS = 3_000
_READ_BYTES = 64


def watch_parent(
    descriptor: int,
    on_gone: Callable[[], None],
    *,
    clean_stop_ms: int = CLEAN_STOP_MS,
    exit_now: Callable[[int], None] = os._exit,
) -> threading.Thread:
    """Call `on_gone` when the pipe at `descriptor` ends, and `exit_now(1)` after `clean_stop_ms`.

    `on_gone` requests the clean stop. It runs in a separate thread, so it may block. Returns the
    watching thread, a daemon, which does not delay the exit of the process.
    """
    watcher = threading.Thread(
        target=_watch,
        args=(descriptor, on_gone, clean_stop_ms, exit_now),
        name="parent-watch",
        daemon=True,
    )
    watcher.start()
    return watcher


def _watch(
    descriptor: int,
    on_gone: Callable[[], None],
    clean_stop_ms: int,
    exit_now: Callable[[int], None],
) -> None:
    while os.read(descriptor, _READ_BYTES):
        pass
    stopper = threading.Thread(target=on_gone, name="parent-gone", daemon=True)
    stopper.start()
    threading.Event().wait(clean_stop_ms / 1000)
    exit_now(1)
