"""The APIs and versions that clients are offered."""

from __future__ import annotations

from rlm.gateway.rewriting.api_versions import REFUSED_VERSION, rewrite_api_versions
from rlm.wire.api.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from rlm.wire.codec import encode
from rlm.wire.error_codes import ErrorCode
from tests.unit.rlm.gateway.gateway_world import GatewayWorld


def offered(*rows: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    response = ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, first, last in rows
        )
    )
    found = rewrite_api_versions(response, GatewayWorld().context()).api_keys
    return [(row.api_key, row.min_version, row.max_version) for row in found]


def test_versions_when_newer_than_known_then_are_capped() -> None:
    """R16: an upgraded cluster keeps working."""
    assert offered((1, 4, 99), (3, 0, 99), (8, 2, 99)) == [(1, 4, 18), (3, 0, 13), (8, 2, 10)]


def test_api_when_unknown_then_is_not_offered() -> None:
    """R16: an unknown API may have addresses."""
    assert offered((999, 0, 1)) == []


def test_versions_when_they_can_not_be_rewritten_then_are_not_offered() -> None:
    """R17: the gateway does not offer Fetch 0-3 and SaslHandshake 0 of an older broker."""
    assert offered((1, 0, 12), (17, 0, 1), (2, 0, 7)) == [(1, 4, 12), (17, 1, 1), (2, 1, 7)]


def test_produce_when_offered_from_zero_then_stays() -> None:
    """Clients that look for version 0 of Produce find it, though brokers no longer take it."""
    assert offered((0, 0, 13)) == [(0, 0, 13)]


def test_api_when_no_version_is_left_then_is_not_offered() -> None:
    assert offered((1, 0, 3)) == []


def test_refusal_when_of_the_brokers_then_passes_as_it_is() -> None:
    """R17."""
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=999, min_version=0, max_version=4),),
    )

    assert rewrite_api_versions(refusal, GatewayWorld().context()) == refusal


def test_refusal_when_the_gateways_own_then_fits_version_zero() -> None:
    """R17, KIP-511."""
    assert encode(REFUSED_VERSION, 0, flexible=0 in API_VERSIONS.flexible)
