"""A supervisor over one tiny child that says what it does in files: `python … DIRECTORY MODE`.

Without a MODE it supervises; with one it is the child: `obedient` ends when told to, `hanging`
ignores SIGTERM and never finishes its clean stop.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from random import Random

from rlm.host_supervisor import supervise
from rlm.process.child import ChildSpec
from rlm.process.os_child import OsSpawner
from rlm.process.parent_watch import watch_parent
from rlm.process.restart_backoff import BackoffSettings, RestartBackoff
from rlm.process.signals import STOP_SIGNALS, signal_inbox
from rlm.process.supervisor import Supervisor
from rsm.system_clock import SystemClock

_FOREVER_MS = 3_600_000


def _supervise(directory: Path, mode: str) -> int:
    command = (sys.executable, __file__, str(directory), mode, "child")
    settings = BackoffSettings(initial_ms=10, max_ms=50)
    supervisor = Supervisor(
        (ChildSpec(name="tiny", command=command),),
        OsSpawner(),
        lambda: RestartBackoff(settings, Random()),
        kill_after_ms=1_000,
    )
    with signal_inbox((*STOP_SIGNALS, signal.SIGCHLD)) as inbox:
        return supervise(supervisor, inbox, SystemClock())


def _be_child(directory: Path, mode: str) -> None:
    with signal_inbox(STOP_SIGNALS) as inbox:
        watch_parent(0, _wait_for_ever if mode == "hanging" else inbox.wake)
        (directory / f"{os.getpid()}.started").touch()
        while True:
            inbox.wait(_FOREVER_MS)
            if mode == "obedient":
                return


def _wait_for_ever() -> None:
    threading.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _be_child(Path(sys.argv[1]), sys.argv[2])
    else:
        sys.exit(_supervise(Path(sys.argv[1]), sys.argv[2]))
