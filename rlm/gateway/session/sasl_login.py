"""Whether the clients of a listener log in, and whether one has. Pure.

On a listener with SASL the broker takes nothing but a login from who has not logged in, and ends
the connection for anything else. A gateway learns from the broker's answers that its listener is
one, and from then on looks into nothing else of such a client either.

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
    """What all sessions of a listener know of it. One loop's."""

    def __init__(self) -> None:
        self.are_wanted = False


class ClientLogin:
    """One client's; a login that is repeated while the connection is in use changes nothing."""

    def __init__(self, listener: ListenerLogins) -> None:
        self._listener = listener
        self._is_done = False

    @property
    def is_wanted(self) -> bool:
        """Whether clients are known to log in here."""
        return self._listener.are_wanted

    @property
    def is_missing(self) -> bool:
        """Whether the broker is known to take nothing else yet."""
        return self._listener.are_wanted and not self._is_done

    def answered(self, api_key: int, version: int, frame: Buffer) -> None:
        """Take the broker's answer to what `is_login_step`. CorruptError."""
        if api_key == SASL_HANDSHAKE.key:
            _, handshake = read_response(SASL_HANDSHAKE, version, frame)
            # Refused where the listener is without SASL.
            self._listener.are_wanted |= handshake.error_code == ErrorCode.NONE
        else:
            _, step = read_response(SASL_AUTHENTICATE, version, frame)
            self._is_done |= step.error_code == ErrorCode.NONE


def is_login_step(head: RequestHead) -> bool:
    """Whether a request is one of a login, in a version whose answer can be read."""
    for api in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
        if head.api_key == api.key:
            return head.api_version in api.versions
    return False
