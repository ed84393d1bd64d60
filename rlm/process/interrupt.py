"""Whether Ctrl-C has reached this process, also where a library hides it."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupt:
    """Raises KeyboardInterrupt for its signals, as Python does for Ctrl-C, and remembers it.

    Some libraries replace that exception by one of their own: confluent-kafka's Consumer raises
    TypeError if it comes while the configuration is read. A program that asks `is_received` ends
    as interrupted then, and not with a stack trace. Made in the main thread, once per process; a
    signal that the process ignores, as one that `nohup` started does, stays ignored.
    """

    def __init__(self, *also: signal.Signals) -> None:
        self.is_received = False
        for number in (signal.SIGINT, *also):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._raise)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        self.is_received = True
        raise KeyboardInterrupt
