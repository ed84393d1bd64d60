"""Classes that a configuration may name by mistake, or that misbehave."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping

from rsm.segment.errors import InvalidConfigError, RetriableError, UnsupportedError
from rsm.storage.chunk_storage import Capabilities, ChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.clock import FakeClock

released = threading.Event()
"""Ends the constructor of `Hanging`."""


class Memory(MemoryChunkStorage):
    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(wall_ms=FakeClock().wall_ms)
        self.name = settings.get("name")
        self.closed = 0
        made.append(self)

    def close(self) -> None:
        self.closed += 1


made: list[Memory] = []


class Incomplete(ChunkStorage):
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    @property
    def capabilities(self) -> Capabilities:
        raise AssertionError


class Raising(Memory):
    def __init__(self, settings: Mapping[str, str]) -> None:
        raise ValueError(f"cannot log in with {settings['password']}")


class Refusing(Memory):
    def __init__(self, settings: Mapping[str, str]) -> None:
        raise InvalidConfigError("missing setting", setting="path", found=dict(settings))


class Unreachable(Memory):
    def __init__(self, settings: Mapping[str, str]) -> None:
        raise RetriableError("cannot connect")


class Exiting(Memory):
    def __init__(self, settings: Mapping[str, str]) -> None:
        sys.exit(0)


class Hanging(Memory):
    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        released.wait(60)


class WithoutCapabilities(Memory):
    @property
    def capabilities(self) -> Capabilities:
        raise KeyError("capabilities")


class Unlicensed(Memory):
    @property
    def capabilities(self) -> Capabilities:
        raise UnsupportedError("no licence")


class Cancelled(Memory):
    def __init__(self, settings: Mapping[str, str]) -> None:
        raise asyncio.CancelledError


NOT_A_CLASS = 1
