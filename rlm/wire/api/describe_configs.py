"""Defines DescribeConfigs (KIP-133, KIP-226), which lists settings and the source of each."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResource(Message):
    """Requests a resource's settings; all of them if `configuration_keys` is None."""

    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")
    configuration_keys: tuple[str, ...] | None = wire(ArrayOf(WireType.STRING), "0+", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest(Message):
    """Requests settings as the receiving broker knows them."""

    resources: tuple[DescribeConfigsResource, ...] = wire(ArrayOf(DescribeConfigsResource), "0+")
    include_synonyms: bool = wire(WireType.BOOLEAN, "1+")
    include_documentation: bool = wire(WireType.BOOLEAN, "3+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsSynonym(Message):
    """Represents a source of a value, which applies if all sources before it are removed."""

    name: str = wire(WireType.STRING, "1+")
    value: str | None = wire(WireType.STRING, "1+", nullable="0+")
    source: int = wire(WireType.INT8, "1+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResourceResult(Message):
    """Represents one setting; `config_source` 1 is an override of the topic."""

    name: str = wire(WireType.STRING, "0+")
    value: str | None = wire(WireType.STRING, "0+", nullable="0+")
    read_only: bool = wire(WireType.BOOLEAN, "0+")
    config_source: int = wire(WireType.INT8, "1+", default=-1)
    is_sensitive: bool = wire(WireType.BOOLEAN, "0+")
    synonyms: tuple[DescribeConfigsSynonym, ...] = wire(ArrayOf(DescribeConfigsSynonym), "1+")
    config_type: int = wire(WireType.INT8, "3+")
    documentation: str | None = wire(WireType.STRING, "3+", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResult(Message):
    """Represents the settings of one resource."""

    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+")
    resource_type: int = wire(WireType.INT8, "0+")
    resource_name: str = wire(WireType.STRING, "0+")
    configs: tuple[DescribeConfigsResourceResult, ...] = wire(
        ArrayOf(DescribeConfigsResourceResult), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse(Message):
    """Represents a result for each requested resource."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    results: tuple[DescribeConfigsResult, ...] = wire(ArrayOf(DescribeConfigsResult), "0+")


DESCRIBE_CONFIGS = Api(
    key=32,
    name="DescribeConfigs",
    versions=Versions.parse("1-4"),
    flexible=Versions.parse("4+"),
    request=DescribeConfigsRequest,
    response=DescribeConfigsResponse,
)
