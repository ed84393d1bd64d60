"""Defines ApiVersions (KIP-35, KIP-511, KIP-584), which lists a broker's APIs and versions."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest(Message):
    """Requests the supported versions; names the client's software."""

    client_software_name: str = wire(WireType.STRING, "3+")
    client_software_version: str = wire(WireType.STRING, "3+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion(Message):
    """Represents one API and the inclusive range of its versions."""

    api_key: int = wire(WireType.INT16, "0+")
    min_version: int = wire(WireType.INT16, "0+")
    max_version: int = wire(WireType.INT16, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeatureKey(Message):
    """Represents a feature that the broker supports, with its range of levels."""

    name: str = wire(WireType.STRING, "3+")
    min_version: int = wire(WireType.INT16, "3+")
    max_version: int = wire(WireType.INT16, "3+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeatureKey(Message):
    """Represents a finalized feature of the cluster, with its range of levels."""

    name: str = wire(WireType.STRING, "3+")
    max_version_level: int = wire(WireType.INT16, "3+")
    min_version_level: int = wire(WireType.INT16, "3+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse(Message):
    """Represents the supported versions.

    A response with UNSUPPORTED_VERSION is encoded as version 0.
    """

    error_code: int = wire(WireType.INT16, "0+")
    api_keys: tuple[ApiVersion, ...] = wire(ArrayOf(ApiVersion), "0+")
    throttle_time_ms: int = wire(WireType.INT32, "1+")
    supported_features: tuple[SupportedFeatureKey, ...] = wire(
        ArrayOf(SupportedFeatureKey), "3+", tag=0
    )
    finalized_features_epoch: int = wire(WireType.INT64, "3+", tag=1, default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = wire(
        ArrayOf(FinalizedFeatureKey), "3+", tag=2
    )
    zk_migration_ready: bool = wire(WireType.BOOLEAN, "3+", tag=3)


API_VERSIONS = Api(
    key=18,
    name="ApiVersions",
    versions=Versions.parse("0-4"),
    flexible=Versions.parse("3+"),
    request=ApiVersionsRequest,
    response=ApiVersionsResponse,
)
