"""The trace of one simulation, event by event, in a form that does not depend on the interpreter.

An event is an act of a process (tests.fakes.effects) with its outcome, an action of the schedule,
an interruption, or the outcome of the invariant checks. Equal seeds must give equal traces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any
from uuid import UUID

from tests.fakes.effects import Act
from tests.fakes.process import Process
from tests.fakes.world import World

_LONGEST_BYTES = 16
_CONTEXT_EVENTS = 8


class Trace:
    """All events in the order in which they ended. Memory: some hundred bytes per event."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._world: World | None = None

    def follow(self, world: World) -> None:
        """Record the acts of all processes that start later in this world."""
        self._world = world
        world.recorder = self._add_act

    def add(self, kind: str, what: str) -> None:
        """Record an event other than an act."""
        now_ms = 0 if self._world is None else self._world.clock.monotonic_ms()
        self.events.append(f"{now_ms} {kind}: {what}".replace("\n", " | "))

    def _add_act(self, process: Process, act: Act) -> None:
        outcome = "" if act.error is None else f" FAILED {canonical(act.error)}"
        answer = "" if act.answer is None else f" -> {canonical(act.answer)}"
        subject = "" if act.subject is None else f" {canonical(act.subject)}"
        self.add(f"manager {process.incarnation.int}", f"{act.name}{subject}{answer}{outcome}")


def canonical(value: Any) -> str:
    """Return a text that is equal for equal values in every interpreter: sets are sorted.

    Mappings keep their order, because a request that is built in another order is another event.
    Fields of a dataclass that do not take part in its comparison are left out.
    """
    match value:
        case Enum() | UUID():
            return value.name if isinstance(value, Enum) else f"#{value.int:x}"
        case bytes() | bytearray() | memoryview():
            return _bytes_text(bytes(value))
        case frozenset() | set():
            return f"{{{', '.join(sorted(map(canonical, value)))}}}"
        case Mapping():
            pairs = (f"{canonical(k)}: {canonical(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        case tuple() | list():
            return f"({', '.join(map(canonical, value))})"
        case BaseException():
            return f"{type(value).__name__}({value})"
    return _fields_text(value) if is_dataclass(value) else repr(value)


def _fields_text(value: Any) -> str:
    names = (each.name for each in fields(value) if each.compare)
    parts = (f"{name}={canonical(getattr(value, name))}" for name in names)
    return f"{type(value).__name__}({', '.join(parts)})"


def _bytes_text(content: bytes) -> str:
    if len(content) <= _LONGEST_BYTES:
        return content.hex()
    return f"{len(content)} bytes {hashlib.blake2b(content, digest_size=8).hexdigest()}"


def first_difference(left: Sequence[str], right: Sequence[str]) -> str | None:
    """Return the first event that differs, with the events before it, or None if there is none."""
    for number, (one, other) in enumerate(zip_longest(left, right)):
        if one != other:
            before = left[max(0, number - _CONTEXT_EVENTS) : number]
            return "\n".join(
                (
                    f"event {number} differs; {len(before)} events before it:",
                    *(f"    {event}" for event in before),
                    f"  < {one or 'the trace ends'}",
                    f"  > {other or 'the trace ends'}",
                )
            )
    return None
