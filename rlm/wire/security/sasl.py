"""Creates the client's messages of SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677).

The caller sends and receives the messages. It calls `first_message`, then `answer` for each message
of the server until `is_done`. User names and passwords are encoded as UTF-8 without normalization,
as in Kafka's ScramFormatter. Use each exchange once, in one thread. Its repr does not show the
password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Protocol

from rsm.segment.errors import CorruptError

# RFC 7677 and Kafka's ScramMechanism require at least 4096. The standards have no upper bound; this
# one limits the computing time that a server can cause.
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 1_000_000

SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING = "n,,"


class SaslExchange(Protocol):
    """Represents the client's side of one authentication. Not thread-safe."""

    def first_message(self) -> bytes:
        """Return the client's first message."""

    def answer(self, challenge: bytes) -> bytes:
        """Return the client's answer to the server's message; do not send it if `is_done`.

        In SCRAM, raises CorruptError if the server's message is malformed, reports an error, or
        does not prove that the server knows the password.
        """

    @property
    def is_done(self) -> bool:
        """Return whether the exchange has succeeded."""


class PlainExchange:
    """Represents a PLAIN exchange: one message, which contains the password in clear text."""

    def __init__(self, *, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()
        self._done = False

    def first_message(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes:
        self._done = True
        return b""

    @property
    def is_done(self) -> bool:
        return self._done


class ScramExchange:
    """Represents a SCRAM exchange: both sides prove that they know the password, and never send it.

    `nonce` must be new for each exchange and unpredictable. It must consist of printable ASCII
    characters other than the comma.
    """

    def __init__(self, *, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._hash_name = SCRAM_HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._client_first = f"n={name},r={nonce}"
        self._server_signature: bytes | None = None
        self._done = False

    def first_message(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._client_first).encode()

    def answer(self, challenge: bytes) -> bytes:
        if self._server_signature is None:
            return self._prove(challenge)
        self._verify_server(challenge, self._server_signature)
        self._done = True
        return b""

    @property
    def is_done(self) -> bool:
        return self._done

    def _prove(self, challenge: bytes) -> bytes:
        attributes = _attributes(challenge)
        nonce, salt, iterations = _challenge_of(attributes, client_nonce=self._nonce)
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={nonce}"
        signed = b",".join([self._client_first.encode(), challenge, without_proof.encode()])
        salted = hashlib.pbkdf2_hmac(self._hash_name, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        signature = self._hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _verify_server(self, challenge: bytes, expected: bytes) -> None:
        attributes = _attributes(challenge)
        if "e" in attributes:
            raise CorruptError(
                "cannot log in: the server ended the SCRAM exchange", reason=attributes["e"]
            )
        if not hmac.compare_digest(_base64(attributes.get("v", "")), expected):
            raise CorruptError("cannot log in: the server did not prove that it knows the password")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash_name)


def _challenge_of(attributes: dict[str, str], *, client_nonce: str) -> tuple[str, bytes, int]:
    """Return the nonce, salt and iteration count of a server's first message."""
    nonce = attributes.get("r", "")
    if not nonce.startswith(client_nonce) or len(nonce) == len(client_nonce):
        raise CorruptError("the server's SCRAM nonce is invalid: it does not extend the client's")
    text = attributes.get("i", "")
    iterations = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise CorruptError(
            "the SCRAM iteration count is invalid: it is out of range",
            iteration_count=text,
            expected=f"{MIN_ITERATIONS} to {MAX_ITERATIONS}",
        )
    salt = _base64(attributes.get("s", ""))
    if not salt:
        raise CorruptError("the server's SCRAM message is invalid: it has no salt")
    return nonce, salt, iterations


def _attributes(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError as error:
        raise CorruptError("the server's SCRAM message is invalid: it is not UTF-8") from error
    return {part[0]: part[2:] for part in parts if part[1:2] == "="}


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptError(
            "the server's SCRAM message is invalid: an attribute is not base64"
        ) from error
