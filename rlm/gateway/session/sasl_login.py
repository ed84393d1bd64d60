"""Tracks whether a listener requires SASL logins, and whether a client has logged in. Pure.

On a SASL listener the broker disconnects clients that send other requests before they log in. The
gateway recognizes a SASL listener by the broker's responses. It then disconnects such clients
itself, but only if it would have to decode the request.

Source: SaslServerAuthenticator of Kafka's clients, KIP-43, KIP-152.
"""

from __future__ import annotations

from rlm.wire.api.sasl_authenticate import SASL_AUTHENTICATE
from rlm.wire.api.sasl_handshake import SASL_HANDSHAKE
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frame_heads import RequestHead
from rlm.wire.frames import read_response
from rlm.wire.schema import Buffer


class ListenerLogins:
    """Represents the login state that all sessions of a listener share. Use it on one loop."""

    def __init__(self) -> None:
        self.uses_sasl = False


class ClientLogin:
    """Represents the login of one client. Reauthentication (KIP-368) does not change it."""

    def __init__(self, listener: ListenerLogins) -> None:
        self._listener = listener
        self._is_done = False

    @property
    def uses_sasl(self) -> bool:
        """Return whether this is known to be a SASL listener."""
        return self._listener.uses_sasl

    @property
    def is_missing(self) -> bool:
        """Return whether the client is known to need a login before it sends other requests."""
        return self._listener.uses_sasl and not self._is_done

    def process_response(self, api_key: int, version: int, frame: Buffer) -> None:
        """Process a response of a login. Raises CorruptError if it is malformed."""
        if api_key == SASL_HANDSHAKE.key:
            _, handshake = read_response(SASL_HANDSHAKE, version, frame)
            # A listener without SASL refuses the handshake.
            self._listener.uses_sasl |= handshake.error_code == ErrorCode.NONE
        else:
            _, step = read_response(SASL_AUTHENTICATE, version, frame)
            self._is_done |= step.error_code == ErrorCode.NONE


def is_login_step(head: RequestHead) -> bool:
    """Return whether a request belongs to a login and `rlm` can read its response."""
    for api in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
        if head.api_key == api.key:
            return head.api_version in api.versions
    return False
