"""Signals and logging of this process, which jobs change."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def handlers_of_signals() -> Iterator[None]:
    """A job sets its own handlers; the fixture restores those of the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    logging.disable(logging.NOTSET)
