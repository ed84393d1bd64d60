"""Chooses how a session treats a request, and predicts whether the broker responds. Pure."""

from __future__ import annotations

from enum import Enum, auto

from rlm.gateway.model.disconnect_cause import ConnectionRefusedByGatewayError, DisconnectCause
from rlm.gateway.model.rewrite import ExchangeRewrite
from rlm.gateway.rewriting.rewrite_table import REWRITES
from rlm.wire.api.api_versions import API_VERSIONS
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.produce import PRODUCE
from rlm.wire.api.sasl_handshake import SASL_HANDSHAKE
from rlm.wire.broker_apis import BROKER_APIS
from rlm.wire.frame_heads import RequestHead, read_produce_acks

_BARE_TOKENS_VERSION = 0  # After SaslHandshake v0, clients send SASL tokens without headers.


class RequestTreatment(Enum):
    """Represents how a session handles a request and its response."""

    PASS_ON = auto()
    REWRITE_RESPONSE = auto()
    REWRITE_EXCHANGE = auto()
    FETCH = auto()
    REFUSE_API_VERSIONS = auto()


def treatment_of(head: RequestHead) -> RequestTreatment:
    """Return the treatment of a request.

    Raises ConnectionRefusedByGatewayError for APIs or versions that are not offered.
    """
    known = BROKER_APIS.get(head.api_key)
    if known is None:
        raise ConnectionRefusedByGatewayError(
            DisconnectCause.UNKNOWN_API, f"api_key={head.api_key}"
        )
    version = head.api_version
    if head.api_key == API_VERSIONS.key and version not in known.versions:
        return RequestTreatment.REFUSE_API_VERSIONS
    if not 0 <= version <= known.versions.last or _is_withheld(head):
        raise ConnectionRefusedByGatewayError(
            DisconnectCause.UNOFFERED_VERSION, f"api_key={head.api_key} version={version}"
        )
    if head.api_key == FETCH.key:
        return RequestTreatment.FETCH
    rewrite = REWRITES.get(head.api_key)
    if isinstance(rewrite, ExchangeRewrite):
        return RequestTreatment.REWRITE_EXCHANGE
    if rewrite is not None and version in rewrite.api.versions and version in rewrite.versions:
        return RequestTreatment.REWRITE_RESPONSE
    return RequestTreatment.PASS_ON


def has_response(head: RequestHead, data: memoryview, *, frame_bytes: int) -> bool | None:
    """Return whether the broker will respond; None until enough of the request has arrived."""
    if head.api_key != PRODUCE.key:
        return True
    acks = read_produce_acks(data, head, frame_bytes=frame_bytes)
    return None if acks is None else acks != 0


def _is_withheld(head: RequestHead) -> bool:
    """Return whether the gateway withholds this version, because it cannot process it."""
    if head.api_key == FETCH.key:
        return head.api_version not in FETCH.versions
    if head.api_key == SASL_HANDSHAKE.key:
        return head.api_version == _BARE_TOKENS_VERSION
    rewrite = REWRITES.get(head.api_key)
    return isinstance(rewrite, ExchangeRewrite) and head.api_version not in rewrite.api.versions
