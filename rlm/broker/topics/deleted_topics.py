"""Which topics are gone from the cluster: every live broker has to say so.

What is stored of a deleted topic is deleted for good, so one broker's word, which may lag, is not
enough, and a broker that cannot be asked leaves it open. A topic that is merely hidden from us is
not gone: brokers refuse it with another error than one that is not there.
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
    """Those of `topics`, names by id, that no live broker has under that id.

    Asks one broker, and all the others about what that one misses. Raises RetriableError if one of
    them cannot be asked, ForeignClusterError if what answers is not `cluster_id`.
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
            "what answers is another cluster", expected=cluster_id, found=view.cluster_id
        )
    return frozenset(
        topic_id for topic_id, name in topics.items() if _is_missing(view, name, topic_id)
    )


def _is_missing(view: ClusterView, name: str, topic_id: UUID) -> bool:
    found = view.topics.get(name)
    if found is not None:
        return found.topic_id != topic_id
    return view.refused.get(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
