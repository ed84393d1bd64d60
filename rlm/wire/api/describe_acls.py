"""Defines DescribeAcls (KIP-140, KIP-290), which lists the ACLs of an authorizer."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire

ANY = 1
"""Matches all resource types, pattern types, operations and permission types."""

LITERAL = 3
"""The pattern type of a literal name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsRequest(Message):
    """Represents a filter; None matches any name, principal or host."""

    resource_type_filter: int = wire(WireType.INT8, "0+")
    resource_name_filter: str | None = wire(WireType.STRING, "0+", nullable="0+")
    pattern_type_filter: int = wire(WireType.INT8, "1+", default=LITERAL)
    principal_filter: str | None = wire(WireType.STRING, "0+", nullable="0+")
    host_filter: str | None = wire(WireType.STRING, "0+", nullable="0+")
    operation: int = wire(WireType.INT8, "0+")
    permission_type: int = wire(WireType.INT8, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AclDescription(Message):
    """Represents one ACL; `host` is `*` for any host."""

    principal: str = wire(WireType.STRING, "0+")
    host: str = wire(WireType.STRING, "0+")
    operation: int = wire(WireType.INT8, "0+")
    permission_type: int = wire(WireType.INT8, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResource(Message):
    """Represents the ACLs of one resource, or of one resource pattern."""

    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")
    pattern_type: int = wire(WireType.INT8, "1+", default=LITERAL)
    acls: tuple[AclDescription, ...] = wire(ArrayOf(AclDescription), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponse(Message):
    """Represents all ACLs that match the filter."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+")
    resources: tuple[DescribeAclsResource, ...] = wire(ArrayOf(DescribeAclsResource), "0+")


DESCRIBE_ACLS = Api(
    key=29,
    name="DescribeAcls",
    versions=Versions.parse("1-3"),
    flexible=Versions.parse("2+"),
    request=DescribeAclsRequest,
    response=DescribeAclsResponse,
)
