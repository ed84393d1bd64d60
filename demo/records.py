"""Generates the demo's records: varied and mostly incompressible.

The arguments of `varied_records` determine all records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

Headers = tuple[tuple[str, bytes | None], ...]

_MEAN_VALUE_BYTES = 1014  # With key and headers, a record has 1 KiB on average.
_MAX_VALUE_BYTES = 16_384
_COMPRESSIBLE_SHARE = 0.06
_NULL_SHARE = 0.01
_EMPTY_SHARE = 0.01
_KEYED_SHARE = 0.75
_HEADER_COUNTS = (0, 0, 1, 2, 3)
_LINE = b"the same line again and again; "


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRecord:
    """A record to produce; None is Kafka's null."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size_bytes(self) -> int:
        """Return the total size of key, value and headers."""
        own = len(self.key or b"") + len(self.value or b"")
        return own + sum(len(name) + len(value or b"") for name, value in self.headers)


def varied_records(*, seed: int, partitions: int, start_ms: int) -> Iterator[DemoRecord]:
    """Yield endless records of many sizes: some null, empty, keyed or out of timestamp order."""
    random = Random(seed)
    number = 0
    while True:
        yield DemoRecord(
            partition=random.randrange(partitions),
            # As if many sources produced the events, each record is up to a second early or late.
            timestamp_ms=start_ms + number // 10 + random.randrange(-1000, 1001),
            key=b"key-%d" % random.randrange(10_000) if random.random() < _KEYED_SHARE else None,
            value=_value(random),
            headers=tuple(_header(random, n) for n in range(random.choice(_HEADER_COUNTS))),
        )
        number += 1


def _value(random: Random) -> bytes | None:
    kind = random.random()
    if kind < _NULL_SHARE:
        return None
    if kind < _NULL_SHARE + _EMPTY_SHARE:
        return b""
    wanted = -math.log(1.0 - random.random()) * _MEAN_VALUE_BYTES
    size = 1 + min(int(wanted), _MAX_VALUE_BYTES)
    if kind < _NULL_SHARE + _EMPTY_SHARE + _COMPRESSIBLE_SHARE:
        return (_LINE * (size // len(_LINE) + 1))[:size]
    return random.randbytes(size)


def _header(random: Random, number: int) -> tuple[str, bytes | None]:
    value = None if random.random() < _NULL_SHARE else random.randbytes(random.randrange(24))
    return f"header-{number}", value
