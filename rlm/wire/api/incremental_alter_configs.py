"""Defines IncrementalAlterConfigs (KIP-339), which changes single settings."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterableConfig(Message):
    """Changes one setting. `config_operation`: 0 set, 1 delete, 2 append, 3 subtract."""

    name: str = wire(WireType.STRING, "0+")
    config_operation: int = wire(WireType.INT8, "0+")
    value: str | None = wire(WireType.STRING, "0+", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource(Message):
    """Represents changes of one resource."""

    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")
    configs: tuple[AlterableConfig, ...] = wire(ArrayOf(AlterableConfig), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsRequest(Message):
    """Changes settings. For topics, any broker forwards the request to the controller."""

    resources: tuple[AlterConfigsResource, ...] = wire(ArrayOf(AlterConfigsResource), "0+")
    validate_only: bool = wire(WireType.BOOLEAN, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResourceResponse(Message):
    """Represents the result of one resource's changes."""

    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+")
    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResponse(Message):
    """Represents a result for each resource."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    responses: tuple[AlterConfigsResourceResponse, ...] = wire(
        ArrayOf(AlterConfigsResourceResponse), "0+"
    )


INCREMENTAL_ALTER_CONFIGS = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=Versions.parse("0-1"),
    flexible=Versions.parse("1+"),
    request=IncrementalAlterConfigsRequest,
    response=IncrementalAlterConfigsResponse,
)
