"""Sends the gateway's own requests on a client's upstream connection, as that client. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rlm.gateway.fetch.exchange import FetchExchange
from rlm.gateway.fetch.log_ends import LIST_OFFSETS_VERSION, LogEndKind, LogEndsQuestion
from rlm.gateway.model.actions import ToBroker
from rlm.gateway.session.in_flight import OwnQuestion, TopicIdsQuestion
from rlm.gateway.session.session_state import SessionState
from rlm.gateway.session.topic_names import METADATA_VERSION, ask_topic_ids
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA
from rlm.wire.frames import request_frame

# The client id in the broker's request log; these requests do not use the client's own quota.
_CLIENT_ID = "kafka-rlm-gateway"
_CORRELATION_ID = -1


def ask_log_ends(
    state: SessionState,
    exchange: FetchExchange,
    question: LogEndsQuestion,
    *,
    is_after_fetch: bool,
) -> None:
    """Send one ListOffsets request for each kind of log end; responses come in this order."""
    for end in LogEndKind:
        frame = request_frame(
            LIST_OFFSETS,
            LIST_OFFSETS_VERSION,
            question.request(end),
            correlation_id=_CORRELATION_ID,
            client_id=_CLIENT_ID,
        )
        state.actions.append(ToBroker(frame))
        state.pending.append(
            OwnQuestion(
                correlation_id=_CORRELATION_ID,
                end=end,
                question=question,
                exchange=exchange,
                is_after_fetch=is_after_fetch,
            )
        )


def ask_names(state: SessionState, names: Iterable[str]) -> None:
    """Send a Metadata request for the ids of these topics, after the request that names them."""
    frame = request_frame(
        METADATA,
        METADATA_VERSION,
        ask_topic_ids(names),
        correlation_id=_CORRELATION_ID,
        client_id=_CLIENT_ID,
    )
    state.actions.append(ToBroker(frame))
    state.pending.append(TopicIdsQuestion(correlation_id=_CORRELATION_ID))
