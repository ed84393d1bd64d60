"""Finds the partitions of the cluster that the options of a read select."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from spark_tools.cluster_topics import MissingTopicError, find_partitions, find_topics
from spark_tools.reading.options import ReadOptions

_PATTERN_ATTEMPTS = 3


def find_chosen(client: Mapping[str, str], options: ReadOptions) -> list[TopicIdPartition]:
    """Return the selected partitions.

    Raises InvalidConfigError if one does not exist, or if the cluster does not answer.
    """
    if options.pattern is None:
        found = find_partitions(client, options.topics, timeout_ms=options.timeout_ms)
        return choose(found, options)
    for _ in range(_PATTERN_ATTEMPTS - 1):
        with suppress(MissingTopicError):  # A topic may be deleted after it is listed.
            return _find_matching(client, options.pattern, options)
    return _find_matching(client, options.pattern, options)


def _find_matching(
    client: Mapping[str, str], pattern: re.Pattern[str], options: ReadOptions
) -> list[TopicIdPartition]:
    topics = find_topics(client, pattern, timeout_ms=options.timeout_ms)
    return choose(find_partitions(client, topics, timeout_ms=options.timeout_ms), options)


def choose(
    found: Mapping[str, Sequence[TopicIdPartition]], options: ReadOptions
) -> list[TopicIdPartition]:
    """Return the selected ones of the found partitions.

    Raises InvalidConfigError if an assigned partition does not exist.
    """
    require_assigned(found, options)
    every = (tip for tips in found.values() for tip in tips)
    return [tip for tip in every if options.chooses(tip.topic, tip.partition)]


def with_added(
    known: Sequence[TopicIdPartition], found: Sequence[TopicIdPartition]
) -> tuple[TopicIdPartition, ...]:
    """Append the found partitions whose topic name and number are not known."""
    names = {(tip.topic, tip.partition) for tip in known}
    return (*known, *(tip for tip in found if (tip.topic, tip.partition) not in names))


def require_assigned(found: Mapping[str, Sequence[TopicIdPartition]], options: ReadOptions) -> None:
    """Raise InvalidConfigError if an assigned partition does not exist."""
    for topic, assigned in (options.partitions or {}).items():
        if missing := assigned - {tip.partition for tip in found[topic]}:
            raise InvalidConfigError(
                "cannot read the partition: the topic has no such partition",
                topic=topic,
                partition=min(missing),
                advice="Name partitions that exist",
            )
