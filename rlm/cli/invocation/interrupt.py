"""Record whether Ctrl-C has reached this process, also if a library hides it."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupt:
    """Raises KeyboardInterrupt for its signals, as Python does for Ctrl-C, and remembers it.

    Some libraries replace that exception: confluent-kafka's Consumer raises TypeError if a signal
    arrives while it reads the configuration. `is_received` lets a program end as interrupted then,
    without a stack trace. Create one per process, in the main thread. A signal that the process
    ignores, for example after `nohup`, stays ignored.
    """

    def __init__(self, *also: signal.Signals) -> None:
        self.is_received = False
        for number in (signal.SIGINT, *also):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._raise)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        self.is_received = True
        raise KeyboardInterrupt
