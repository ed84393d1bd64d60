"""Parses the options of the data source `rlm`. Pure.

An option that Spark's Kafka source also has keeps its name and meaning. Spark lowers the case of
names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from rsm.config.values import require_topic_name
from rsm.segment.batches.aborted import Isolation
from rsm.segment.errors import InvalidConfigError
from spark_tools.connection import OPTION_PREFIXES
from spark_tools.connection import OPTIONS as CONNECTION_OPTIONS
from spark_tools.option_values import OptionValues, unknown_option, wrong_value
from spark_tools.reading.admission import TriggerLimits
from spark_tools.reading.source_options import (
    FROM_TIMESTAMP,
    LEASE,
    MAX_BYTES_PER_TRIGGER,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_PARTITIONS,
    READ_OPTIONS,
    SPLIT_BYTES,
    TIMEOUT,
    UNTIL_TIMESTAMP,
)
from spark_tools.rows.schema import HEADERS, UNREADABLE, chosen_columns
from spark_tools.schemas.decode_options import DECODE_OPTIONS, REGISTRY_PREFIX
from spark_tools.schemas.settings import DecodeSettings

STORED_OFFSET, EARLIEST_OFFSET, LATEST_OFFSET = -3, -2, -1
"""The end offset of the stored log; the log start offset; the end offset of the broker's log."""

OPTIONS = tuple(option.name for option in (*READ_OPTIONS, *DECODE_OPTIONS))
"""The options that have no prefix, except those of the connection."""
PREFIXES = (*OPTION_PREFIXES, REGISTRY_PREFIX)
_BY_TIME = "fromTimestamp and untilTimestamp, which choose records; Spark's choose offsets"
# Options of Spark's Kafka source and librdkafka that this source lacks, in lower case.
_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "startingtimestamp": _BY_TIME,
        "endingtimestamp": _BY_TIME,
        "startingoffsetsbytimestamp": _BY_TIME,
        "endingoffsetsbytimestamp": _BY_TIME,
        "startingoffsetsbytimestampstrategy": _BY_TIME,
        "maxrecordsperpartition": "splitBytes",
        "minoffsetspertrigger": "maxOffsetsPerTrigger",
        "maxtriggerdelay": "maxOffsetsPerTrigger",
        "groupidprefix": "nothing: there is no consumer group",
        "client.isolation.level": "isolation",
    }
)
_TOPIC_OPTIONS = ("subscribe", "subscribePattern", "assign")
_TASKS_PER_CORE = 2
_MIN_TASK_BYTES = 4 << 20  # A smaller task spends most of its time on its fixed cost.


class Mode(Enum):
    """Represents what a task does at unreadable offsets: fail, yield a row, or omit them."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DROPMALFORMED = "dropmalformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetBounds:
    """Represents an offset bound for each partition of `named`, and `default` for all others."""

    default: int
    named: Mapping[tuple[str, int], int]

    def of(self, topic: str, partition: int) -> int:
        """Return an offset, or one of the three special values."""
        return self.named.get((topic, partition), self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Represents what to read and how.

    `topics` is empty if a `pattern` selects them. If `partitions` is None, all partitions are read.
    Records have timestamps in [from_ms, until_ms). `parallelism` is the number of the application's
    cores; 0 if it is unknown.
    """

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    partitions: Mapping[str, frozenset[int]] | None
    starting: OffsetBounds
    ending: OffsetBounds
    from_ms: int | None
    until_ms: int | None
    columns: tuple[str, ...]
    isolation: Isolation
    mode: Mode
    split_bytes: int
    min_partitions: int
    lease_ms: int
    timeout_ms: int
    limits: TriggerLimits
    decode: DecodeSettings
    parallelism: int = 0

    def task_bytes(self, stored_bytes: int) -> int:
        """Return the maximum bytes of a task, so that each core gets several, but no tiny tasks.

        Returns `split_bytes` if the number of cores is unknown.
        """
        if self.parallelism == 0:
            return self.split_bytes
        share_bytes = stored_bytes // (_TASKS_PER_CORE * self.parallelism)
        return min(self.split_bytes, max(share_bytes, _MIN_TASK_BYTES))

    def chooses(self, topic: str, partition: int) -> bool:
        """Return whether to read the partition."""
        return self.partitions is None or partition in self.partitions.get(topic, ())

    def continues(self, topic: str, partition: int) -> bool:
        """Return whether to read the broker's records above the stored end."""
        return self.ending.of(topic, partition) == LATEST_OFFSET

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse the options.

        Raises InvalidConfigError if an option is unknown or invalid, or if options contradict each
        other.
        """
        given = OptionValues(options)
        _refuse_unknown(given)
        mode = _mode(given)
        columns = chosen_columns(given.text("columns"))
        if not given.flag("includeHeaders", default=True):
            if given.has("columns") and HEADERS in columns:
                raise InvalidConfigError(
                    "options contradict each other",
                    columns=HEADERS,
                    includeHeaders="false",
                    advice="Omit one of them",
                )
            columns = tuple(name for name in columns if name != HEADERS)
        partitions = _assigned(given)
        return cls(
            topics=_topics(given, partitions),
            pattern=given.pattern("subscribePattern") if given.has("subscribePattern") else None,
            partitions=partitions,
            starting=_offsets(given, "startingOffsets", EARLIEST_OFFSET),
            ending=_offsets(given, "endingOffsets", STORED_OFFSET),
            from_ms=given.amount_if_given(FROM_TIMESTAMP),
            until_ms=given.amount_if_given(UNTIL_TIMESTAMP),
            columns=(*columns, UNREADABLE) if mode is Mode.PERMISSIVE else columns,
            isolation=given.choice("isolation", Isolation, Isolation.READ_UNCOMMITTED),
            mode=mode,
            split_bytes=given.amount(SPLIT_BYTES),
            min_partitions=given.amount(MIN_PARTITIONS),
            lease_ms=given.amount(LEASE),
            timeout_ms=given.amount(TIMEOUT),
            decode=DecodeSettings.of(given),
            limits=TriggerLimits(
                max_offsets=given.amount_if_given(MAX_OFFSETS_PER_TRIGGER),
                max_bytes=given.amount_if_given(MAX_BYTES_PER_TRIGGER),
            ),
        )


def _refuse_unknown(given: OptionValues) -> None:
    """Raise InvalidConfigError for an unknown option, such as a misspelled `endingOffsets`."""
    known = {name.lower() for name in OPTIONS}
    for name in given.names():
        if name in _OTHERS:
            raise InvalidConfigError(
                "the data source does not have this option", option=name, instead=_OTHERS[name]
            )
        if name in known or name in CONNECTION_OPTIONS or name.startswith(PREFIXES):
            continue
        raise unknown_option(name, OPTIONS)


def _mode(given: OptionValues) -> Mode:
    """Return the mode that `mode` or Spark's option `failOnDataLoss` selects.

    Raises InvalidConfigError if the two contradict each other.
    """
    if not given.has("failOnDataLoss"):
        return given.choice("mode", Mode, Mode.FAILFAST)
    fails = given.flag("failOnDataLoss", default=True)
    mode = given.choice("mode", Mode, Mode.FAILFAST if fails else Mode.DROPMALFORMED)
    if fails != (mode is Mode.FAILFAST):
        raise InvalidConfigError(
            "options contradict each other",
            mode=mode.value,
            failOnDataLoss=str(fails).lower(),
            advice="Omit one of them",
        )
    return mode


def _topics(
    given: OptionValues, partitions: Mapping[str, frozenset[int]] | None
) -> tuple[str, ...]:
    if sum(given.has(name) for name in _TOPIC_OPTIONS) != 1:
        raise InvalidConfigError(
            "exactly one option must select the topics",
            expected=f"one of the options {', '.join(_TOPIC_OPTIONS)}",
            advice="Give one of these options",
        )
    if given.has("subscribe"):
        return tuple(map(require_topic_name, given.listed("subscribe", "topics, comma-separated")))
    return tuple(partitions or ())


def _assigned(given: OptionValues) -> Mapping[str, frozenset[int]] | None:
    if not given.has("assign"):
        return None
    expected = 'like {"orders":[0,1]}'
    assigned = given.mapping("assign", expected)
    partitions = {
        require_topic_name(topic): frozenset(each)
        for topic, each in assigned.items()
        if isinstance(each, list) and each and all(_is_number(number, 0) for number in each)
    }
    if not partitions or len(partitions) < len(assigned):
        raise wrong_value("assign", str(given.text("assign")), expected)
    return partitions


def _is_number(value: object, at_least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def _offsets(given: OptionValues, name: str, default: int) -> OffsetBounds:
    keywords = {"earliest": EARLIEST_OFFSET, "latest": LATEST_OFFSET, "stored": STORED_OFFSET}
    text = given.text(name)
    if text is None:
        return OffsetBounds(default=default, named={})
    if text.lower() in keywords:
        return OffsetBounds(default=keywords[text.lower()], named={})
    expected = (
        'earliest, latest, stored, or like {"orders":{"0":17}} with -2 for earliest, -1 for latest'
    )
    named: dict[tuple[str, int], int] = {}
    for topic, bounds in given.mapping(name, expected).items():
        if not isinstance(bounds, dict):
            raise wrong_value(name, text, expected)
        for partition, offset in bounds.items():
            if not partition.isdecimal() or not _is_number(offset, EARLIEST_OFFSET):
                raise wrong_value(name, text, expected)
            named[topic, int(partition)] = offset
    return OffsetBounds(default=default, named=named)
