"""The options of the data source `rlm`, parsed once. Pure.

Names are those of Spark's Kafka source where it has the option. Spark hands over option names in
lower case, whatever the user wrote.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from rsm.segment.aborted import Isolation
from rsm.segment.errors import InvalidConfigError
from spark_tools.connection import OPTION_PREFIXES, OPTIONS
from spark_tools.reading.narrowing import Narrowing
from spark_tools.rows.schema import UNREADABLE, chosen_columns

STORED_OFFSET, EARLIEST_OFFSET, LATEST_OFFSET = -3, -2, -1
"""The end of what is stored; where the log begins; the end of the broker's log."""

_NAMES = (
    "subscribe", "assign", "startingOffsets", "endingOffsets", "startingTimestamp",
    "endingTimestamp", "columns", "isolation", "mode", "splitBytes", "leaseMs", "timeoutMs",
)  # fmt: skip
_DEFAULT_SPLIT_BYTES = 128 << 20
_DEFAULT_LEASE_MS = 3_600_000
_MAX_LEASE_MS = 86_400_000
_DEFAULT_TIMEOUT_MS = 60_000

E = TypeVar("E", bound=Enum)


class Mode(Enum):
    """What becomes of a segment that can't be read: its task fails, or a row lists it."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetBounds:
    """A bound per partition of each topic; `default` for those that are not named."""

    default: int
    named: Mapping[tuple[str, int], int]

    def of(self, topic: str, partition: int) -> int:
        """An offset, or one of the three that stand for one."""
        return self.named.get((topic, partition), self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What is to be read and how. `partitions` None: all of each topic; times are half-open."""

    topics: tuple[str, ...]
    partitions: Mapping[str, frozenset[int]] | None
    starting: OffsetBounds
    ending: OffsetBounds
    from_ms: int | None
    until_ms: int | None
    columns: tuple[str, ...]
    isolation: Isolation
    mode: Mode
    split_bytes: int
    lease_ms: int
    timeout_ms: int
    narrowing: Narrowing = field(default_factory=Narrowing)

    def narrowed(self, narrowing: Narrowing) -> ReadOptions:
        """The same, less what a query's filters rule out."""
        starts = [ms for ms in (self.from_ms, narrowing.from_ms) if ms is not None]
        ends = [ms for ms in (self.until_ms, narrowing.until_ms) if ms is not None]
        return replace(
            self,
            from_ms=max(starts, default=None),
            until_ms=min(ends, default=None),
            narrowing=narrowing,
        )

    def chooses(self, topic: str, partition: int) -> bool:
        """Whether anything of a partition is to be read."""
        assigned = self.partitions is None or partition in self.partitions.get(topic, ())
        return assigned and self.narrowing.admits(topic, partition)

    def continues(self, topic: str, partition: int) -> bool:
        """Whether what a broker has behind the stored end is to be read too."""
        return self.ending.of(topic, partition) == LATEST_OFFSET

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """InvalidConfigError names the option, what was found, and what is expected."""
        given = {name.lower(): value for name, value in options.items()}
        _refuse_unknown(given)
        topics, partitions = _topics(given)
        mode = _choice(given, "mode", Mode, Mode.FAILFAST)
        columns = chosen_columns(given.get("columns"))
        return cls(
            topics=topics,
            partitions=partitions,
            starting=_offsets(given, "startingOffsets", EARLIEST_OFFSET),
            ending=_offsets(given, "endingOffsets", STORED_OFFSET),
            from_ms=_number(given, "startingTimestamp", None, 0, 1 << 62),
            until_ms=_number(given, "endingTimestamp", None, 0, 1 << 62),
            columns=(*columns, UNREADABLE) if mode is Mode.PERMISSIVE else columns,
            isolation=_choice(given, "isolation", Isolation, Isolation.READ_UNCOMMITTED),
            mode=mode,
            split_bytes=_required(_number(given, "splitBytes", _DEFAULT_SPLIT_BYTES, 1, 1 << 40)),
            lease_ms=_required(_number(given, "leaseMs", _DEFAULT_LEASE_MS, 0, _MAX_LEASE_MS)),
            timeout_ms=_required(_number(given, "timeoutMs", _DEFAULT_TIMEOUT_MS, 1, 1 << 31)),
        )


def _refuse_unknown(given: Mapping[str, str]) -> None:
    """A misspelt bound would silently read everything."""
    known = {name.lower(): name for name in _NAMES}
    for name in given:
        if name in known or name in OPTIONS or name.startswith(OPTION_PREFIXES):
            continue
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0)
        raise InvalidConfigError("unknown option", option=name, nearest=known[nearest[0]])


def _topics(
    given: Mapping[str, str],
) -> tuple[tuple[str, ...], Mapping[str, frozenset[int]] | None]:
    if ("subscribe" in given) == ("assign" in given):
        raise InvalidConfigError(
            "which topics?", expected="one of the options subscribe and assign"
        )
    if "subscribe" in given:
        topics = tuple(dict.fromkeys(part.strip() for part in given["subscribe"].split(",")))
        if not all(topics):
            raise _wrong("subscribe", given["subscribe"], "topics, comma-separated")
        return topics, None
    expected = 'like {"orders":[0,1]}'
    assigned = _json(given, "assign", expected)
    partitions = {
        topic: frozenset(each)
        for topic, each in assigned.items()
        if isinstance(each, list) and each and all(_is_number(number, 0) for number in each)
    }
    if not partitions or len(partitions) < len(assigned):
        raise _wrong("assign", given["assign"], expected)
    return tuple(partitions), partitions


def _is_number(value: object, at_least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def _offsets(given: Mapping[str, str], name: str, default: int) -> OffsetBounds:
    words = {"earliest": EARLIEST_OFFSET, "latest": LATEST_OFFSET, "stored": STORED_OFFSET}
    text = given.get(name.lower())
    if text is None:
        return OffsetBounds(default=default, named={})
    if text.lower() in words:
        return OffsetBounds(default=words[text.lower()], named={})
    expected = (
        'earliest, latest, stored, or like {"orders":{"0":17}} with -2 for earliest, -1 for latest'
    )
    named: dict[tuple[str, int], int] = {}
    for topic, bounds in _json(given, name, expected).items():
        if not isinstance(bounds, dict):
            raise _wrong(name, text, expected)
        for partition, offset in bounds.items():
            if not partition.isdecimal() or not _is_number(offset, EARLIEST_OFFSET):
                raise _wrong(name, text, expected)
            named[topic, int(partition)] = offset
    return OffsetBounds(default=default, named=named)


def _json(given: Mapping[str, str], name: str, expected: str) -> dict[str, object]:
    text = given[name.lower()]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _wrong(name, text, expected) from error
    if not isinstance(found, dict):
        raise _wrong(name, text, expected)
    return found


def _number(
    given: Mapping[str, str], name: str, default: int | None, at_least: int, at_most: int
) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return default
    if not text.isdecimal() or not at_least <= int(text) <= at_most:
        raise _wrong(name, text, f"a number from {at_least} to {at_most}")
    return int(text)


def _required(value: int | None) -> int:
    assert value is not None, "it has a default"
    return value


def _choice(given: Mapping[str, str], name: str, kind: type[E], default: E) -> E:
    text = given.get(name.lower())
    if text is None:
        return default
    by_word = {str(each.value): each for each in kind}
    if text.lower() not in by_word:
        raise _wrong(name, text, " or ".join(by_word))
    return by_word[text.lower()]


def _wrong(name: str, found: str, expected: str) -> InvalidConfigError:
    return InvalidConfigError(
        "not a value of this option", option=name, found=found, expected=expected
    )
