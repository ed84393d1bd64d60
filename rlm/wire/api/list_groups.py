"""Defines ListGroups (KIP-518, KIP-848), a request for the groups that one broker coordinates."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire

SHARE = "share"
"""The type of a share group (KIP-932)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest(Message):
    """Represents filters; an empty filter matches all groups."""

    states_filter: tuple[str, ...] = wire(ArrayOf(WireType.STRING), "4+")
    types_filter: tuple[str, ...] = wire(ArrayOf(WireType.STRING), "5+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup(Message):
    """Represents one group."""

    group_id: str = wire(WireType.STRING, "0+")
    protocol_type: str = wire(WireType.STRING, "0+")
    group_state: str = wire(WireType.STRING, "4+")
    group_type: str = wire(WireType.STRING, "5+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse(Message):
    """Represents the groups that the user may describe; there is no error if there are none."""

    throttle_time_ms: int = wire(WireType.INT32, "1+")
    error_code: int = wire(WireType.INT16, "0+")
    groups: tuple[ListedGroup, ...] = wire(ArrayOf(ListedGroup), "0+")


LIST_GROUPS = Api(
    key=16,
    name="ListGroups",
    versions=Versions.parse("0-5"),
    flexible=Versions.parse("3+"),
    request=ListGroupsRequest,
    response=ListGroupsResponse,
)
