"""Limits ApiVersions to the APIs and versions that can safely pass a gateway.

A message of an unknown API or version may contain data that the gateway must change, such as a
broker's address. With this limit, an upgraded cluster keeps working through an older gateway.
"""

from __future__ import annotations

from dataclasses import replace

from rlm.gateway.model.context import GatewayContext
from rlm.wire.api.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from rlm.wire.api.delete_records import DELETE_RECORDS
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from rlm.wire.api.sasl_handshake import SASL_HANDSHAKE
from rlm.wire.broker_apis import BROKER_APIS
from rlm.wire.error_codes import ErrorCode

# After version 0 of SaslHandshake, clients send bare tokens instead of requests.
_FIRST_VERSIONS = {SASL_HANDSHAKE.key: 1} | {
    api.key: api.versions.first
    for api in (FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, DELETE_RECORDS)
}

# The response to an unknown version of ApiVersions, encoded as version 0 (KIP-511).
REFUSED_VERSION = ApiVersionsResponse(
    error_code=ErrorCode.UNSUPPORTED_VERSION,
    api_keys=(
        ApiVersion(
            api_key=API_VERSIONS.key,
            min_version=API_VERSIONS.versions.first,
            max_version=API_VERSIONS.versions.last,
        ),
    ),
)


def rewrite_api_versions(
    response: ApiVersionsResponse, _context: GatewayContext
) -> ApiVersionsResponse:
    """Remove unsupported APIs and versions. A response with an error passes unchanged."""
    if response.error_code != ErrorCode.NONE:
        return response
    offered = (_offered(row) for row in response.api_keys)
    return replace(response, api_keys=tuple(row for row in offered if row is not None))


def _offered(row: ApiVersion) -> ApiVersion | None:
    known = BROKER_APIS.get(row.api_key)
    if known is None:
        return None
    # For other APIs, versions older than those in the table pass as opaque frames.
    first = max(row.min_version, _FIRST_VERSIONS.get(row.api_key, row.min_version))
    last = min(row.max_version, known.versions.last)
    return None if first > last else replace(row, min_version=first, max_version=last)
