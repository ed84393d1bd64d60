"""Defines AlterConfigs (KIP-133), which replaces all settings of a resource."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterableConfig(Message):
    """Represents one setting; a `value` of None resets it to the default."""

    name: str = wire(WireType.STRING, "0+")
    value: str | None = wire(WireType.STRING, "0+", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource(Message):
    """Represents all settings of a resource; settings without an entry are reset."""

    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")
    configs: tuple[AlterableConfig, ...] = wire(ArrayOf(AlterableConfig), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequest(Message):
    """Replaces settings. For topics, any broker forwards the request to the controller."""

    resources: tuple[AlterConfigsResource, ...] = wire(ArrayOf(AlterConfigsResource), "0+")
    validate_only: bool = wire(WireType.BOOLEAN, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResourceResponse(Message):
    """Represents the result of one resource."""

    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+")
    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponse(Message):
    """Represents a result for each resource."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    responses: tuple[AlterConfigsResourceResponse, ...] = wire(
        ArrayOf(AlterConfigsResourceResponse), "0+"
    )


ALTER_CONFIGS = Api(
    key=33,
    name="AlterConfigs",
    versions=Versions.parse("0-2"),
    flexible=Versions.parse("2+"),
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
)
