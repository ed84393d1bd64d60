"""Defines SaslAuthenticate (KIP-152, KIP-368), which carries a SASL mechanism's messages."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateRequest(Message):
    """Represents a mechanism's message, which may contain a password."""

    auth_bytes: bytes = wire(WireType.BYTES, "0+", secret=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateResponse(Message):
    """Represents a mechanism's response; `session_lifetime_ms` 0 means no limit."""

    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+")
    auth_bytes: bytes = wire(WireType.BYTES, "0+", secret=True)
    session_lifetime_ms: int = wire(WireType.INT64, "1+")


SASL_AUTHENTICATE = Api(
    key=36,
    name="SaslAuthenticate",
    versions=Versions.parse("0-2"),
    flexible=Versions.parse("2+"),
    request=SaslAuthenticateRequest,
    response=SaslAuthenticateResponse,
)
