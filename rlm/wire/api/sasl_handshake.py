"""Defines SaslHandshake (KIP-43, KIP-152), which chooses a connection's SASL mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest(Message):
    """Names the client's mechanism."""

    mechanism: str = wire(WireType.STRING, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse(Message):
    """Lists the mechanisms that the broker supports."""

    error_code: int = wire(WireType.INT16, "0+")
    mechanisms: tuple[str, ...] = wire(ArrayOf(WireType.STRING), "0+")


SASL_HANDSHAKE = Api(
    key=17,
    name="SaslHandshake",
    versions=Versions.parse("1"),
    flexible=Versions.parse("none"),
    request=SaslHandshakeRequest,
    response=SaslHandshakeResponse,
)
