"""Finds deleted topics: those that no live broker knows.

**Data loss:** managers permanently delete the objects of each topic that this module reports. One
broker may lag, so the response of one broker is not enough. If a live broker is unreachable, no
topic is reported. A topic that is hidden from this user does not count as deleted, because brokers
refuse it with another error.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import ClusterView, fetch_cluster_view
from rlm.broker.errors import ForeignClusterError
from rlm.wire.error_codes import ErrorCode


def find_deleted_topics(
    bootstrap: Bootstrap, topics: Mapping[UUID, str], *, cluster_id: str
) -> frozenset[UUID]:
    """Return the ids of those `topics` (names by id) that no live broker knows.

    Asks one broker about all topics, then each live broker about the topics that are still
    missing. Raises RetriableError if a live broker is unreachable, and ForeignClusterError if
    another cluster answers.
    """
    if not topics:
        return frozenset()
    view = bootstrap.view(sorted(set(topics.values())))
    missing = _missing(view, topics, cluster_id)
    for address in view.brokers.values():
        if not missing:
            break
        with bootstrap.at(address) as broker:
            names = sorted({topics[topic_id] for topic_id in missing})
            seen = fetch_cluster_view(broker, names)
        missing &= _missing(seen, {each: topics[each] for each in missing}, cluster_id)
    return missing


def _missing(view: ClusterView, topics: Mapping[UUID, str], cluster_id: str) -> frozenset[UUID]:
    if view.cluster_id != cluster_id:
        raise ForeignClusterError(
            "cannot look for deleted topics: another cluster answered",
            expected=cluster_id,
            found=view.cluster_id,
        )
    return frozenset(
        topic_id for topic_id, name in topics.items() if _is_missing(view, name, topic_id)
    )


def _is_missing(view: ClusterView, name: str, topic_id: UUID) -> bool:
    found = view.topics.get(name)
    if found is not None:
        return found.topic_id != topic_id
    return view.refused.get(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
