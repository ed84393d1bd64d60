from __future__ import annotations

import os
import queue
import threading

from rlm.process.parent_watch import watch_parent


def test_watch_when_the_pipe_ends_then_asks_for_the_clean_stop_and_exits() -> None:
    read_fd, write_fd = os.pipe()
    asked = threading.Event()
    exits: queue.Queue[int] = queue.Queue()
    watcher = watch_parent(read_fd, asked.set, clean_stop_ms=1, exit_now=exits.put)
    assert watcher.is_alive()

    os.close(write_fd)

    assert asked.wait(10)
    assert exits.get(timeout=10) == 1
    os.close(read_fd)


def test_watch_when_the_clean_stop_hangs_then_exits_all_the_same() -> None:
    read_fd, write_fd = os.pipe()
    never = threading.Event()
    exits: queue.Queue[int] = queue.Queue()
    watch_parent(read_fd, lambda: _wait_for(never), clean_stop_ms=1, exit_now=exits.put)

    os.close(write_fd)

    assert exits.get(timeout=10) == 1
    never.set()
    os.close(read_fd)


def _wait_for(event: threading.Event) -> None:
    event.wait()
