"""Sends the gateway's requests on a client's upstream connection, with the client's rights. Pure.

One kind requests the ids of topics. A topic that is deleted and created again keeps its name and
gets another id. The gateway must not serve the old topic's records as records of the new topic, but
its own view may be a few seconds old. So after each request that names topics and may need stored
data, the gateway requests the ids on the same connection. Ids are never reused. So if the returned
id is the one in the gateway's view, the topic also had it when the broker answered the client's
request. (Source: KIP-516.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.log_ends import LIST_OFFSETS_VERSION, LogEndKind, LogEndsRequests
from rlm.gateway.model.actions import ToBroker
from rlm.gateway.session.in_flight import OwnLogEndsRequest, OwnTopicIdsRequest
from rlm.gateway.session.session_state import SessionState
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA, MetadataRequest, MetadataRequestTopic, MetadataResponse
from rlm.wire.frames import request_frame

# The broker's request log shows this client id. Quotas of the client's own id do not apply to it.
_CLIENT_ID = "kafka-rlm-gateway"
_CORRELATION_ID = -1
# This is the first version with topic ids; every broker since Kafka 2.8 supports it.
METADATA_VERSION = 10
_NO_ID = UUID(int=0)


def request_log_ends(
    state: SessionState,
    exchange: FetchExchange,
    log_ends: LogEndsRequests,
    *,
    is_after_fetch: bool,
) -> None:
    """Send one ListOffsets request for each kind of log end; responses arrive in this order."""
    for end in LogEndKind:
        frame = request_frame(
            LIST_OFFSETS,
            LIST_OFFSETS_VERSION,
            log_ends.request(end),
            correlation_id=_CORRELATION_ID,
            client_id=_CLIENT_ID,
        )
        state.actions.append(ToBroker(frame))
        state.pending.append(
            OwnLogEndsRequest(
                correlation_id=_CORRELATION_ID,
                end=end,
                log_ends=log_ends,
                exchange=exchange,
                is_after_fetch=is_after_fetch,
            )
        )


def request_topic_ids(state: SessionState, names: Iterable[str]) -> None:
    """Send a Metadata request for the ids of these topics, after the request that names them."""
    frame = request_frame(
        METADATA,
        METADATA_VERSION,
        topic_ids_request(names),
        correlation_id=_CORRELATION_ID,
        client_id=_CLIENT_ID,
    )
    state.actions.append(ToBroker(frame))
    state.pending.append(OwnTopicIdsRequest(correlation_id=_CORRELATION_ID))


def topic_ids_request(names: Iterable[str]) -> MetadataRequest:
    """Return the Metadata request."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in sorted(set(names))),
        allow_auto_topic_creation=False,
    )


def leader_epochs(response: MetadataResponse) -> Mapping[tuple[str, int], int]:
    """Return leader epochs by topic name and partition, for partitions with a leader."""
    return {
        (topic.name, partition.partition_index): partition.leader_epoch
        for topic in response.topics
        for partition in topic.partitions
        if topic.name is not None and partition.leader_id >= 0
    }


def topic_ids(response: MetadataResponse) -> Mapping[str, UUID]:
    """Return topic ids by name; omit topics for which the broker returned no id."""
    return {
        topic.name: topic.topic_id
        for topic in response.topics
        if topic.name is not None and topic.topic_id != _NO_ID
    }
