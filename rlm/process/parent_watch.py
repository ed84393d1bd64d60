"""The child's side of the supervisor's pipe: end when the parent is gone.

Nothing is ever written to the pipe; end of file means that the supervisor ended, be it by
kill -9. The clean stop gets a short time and then the process exits, so that a broker is never
served by an orphan beside its successor.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

CLEAN_STOP_MS = 3_000  # with the start of an interpreter before it still below 5 s
_READ_BYTES = 64


def watch_parent(
    descriptor: int,
    on_gone: Callable[[], None],
    *,
    clean_stop_ms: int = CLEAN_STOP_MS,
    exit_now: Callable[[int], None] = os._exit,
) -> threading.Thread:
    """Call `on_gone` when the pipe at `descriptor` ends, and `exit_now(1)` a while later.

    `on_gone` asks for the clean stop and runs beside the exit's clock, so it may hang. Returns
    the watching thread, a daemon: a process that has stopped by then is not held up.
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
