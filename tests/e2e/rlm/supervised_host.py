"""A supervisor of one tiny child that reports its actions in files: `python … DIRECTORY MODE`.

With a further argument this program is the child. `obedient` ends on SIGTERM. `hanging` ignores
SIGTERM, never finishes its clean stop, and writes its stacks on SIGQUIT as a worker does. `serving`
greets clients on a socket that the supervisor bound, at the port in `DIRECTORY/port`. `idle` runs
and never listens there.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
from functools import partial
from pathlib import Path
from random import Random

from rlm.app.supervisor import supervise
from rlm.config.values import HostPort
from rlm.process.child import ChildSpec
from rlm.process.os_child import OsSpawner
from rlm.process.parent_watch import watch_parent
from rlm.process.restart_backoff import BackoffSettings, RestartBackoff
from rlm.process.signals import STOP_SIGNALS, signal_inbox
from rlm.process.supervisor import KILL_AFTER_MS, Supervisor
from rlm.worker.client_listener import bind_closed, refuse_unserved
from rsm.system_clock import SystemClock

_FOREVER_MS = 3_600_000
_ANY_PORT = HostPort(host="127.0.0.1", port=0)
GREETING = b"hello"


def _supervise(directory: Path, mode: str) -> int:
    bound = bind_closed(_ANY_PORT, key="port")
    (directory / "port").write_text(str(bound.getsockname()[1]))
    command = (sys.executable, __file__, str(directory), mode, str(bound.fileno()))
    # The test first sees that clients are refused without the child.
    settings = BackoffSettings(initial_ms=10, max_ms=50)
    if mode == "serving":
        settings = BackoffSettings(initial_ms=_FOREVER_MS, max_ms=_FOREVER_MS)
    child = ChildSpec(name="tiny", command=command, inherited_fds=(bound.fileno(),))
    supervisor = Supervisor(
        (child,),
        OsSpawner(),
        lambda: RestartBackoff(settings, Random()),
        kill_after_ms=2_000 if mode == "hanging" else KILL_AFTER_MS,
    )
    with signal_inbox((*STOP_SIGNALS, signal.SIGCHLD)) as inbox:
        refuse = partial(refuse_unserved, bound, (child,))
        return supervise(supervisor, inbox, SystemClock(), stepped=refuse)


def _be_child(directory: Path, mode: str, fd: int) -> None:
    if mode == "serving":
        listening = socket.socket(fileno=fd)
        listening.listen()
        threading.Thread(target=_greet, args=(listening,), daemon=True).start()
    faulthandler.register(signal.SIGQUIT)
    with signal_inbox(STOP_SIGNALS) as inbox:
        watch_parent(0, _wait_without_end if mode == "hanging" else inbox.wake)
        (directory / f"{os.getpid()}.started").touch()
        while True:
            inbox.wait(_FOREVER_MS)
            if mode != "hanging":
                return


def _greet(listening: socket.socket) -> None:
    greeted = []
    while True:
        greeted.append(listening.accept()[0])
        greeted[-1].sendall(GREETING)


def _wait_without_end() -> None:
    threading.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _be_child(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(_supervise(Path(sys.argv[1]), sys.argv[2]))
