"""Signs requests to a manager, and its responses. Pure.

Both are signed with HMAC-SHA256 and the cluster's secret (rlmm.events.secret), which is never sent
over HTTP. The signature covers a list of fields, each preceded by its length in 4 bytes, big
endian:

| of | fields |
| --- | --- |
| a request | `rlm-request-1`, method, path with query, SHA-256 of the body, time, nonce, target |
| a response | `rlm-answer-1`, the request's signature, status, SHA-256 of the body, identity |

The time is that of the brokers in ms, from the metadata topic, because hosts' clocks may differ.
The nonce is random and used once. The target is the incarnation of the receiving process, so that a
request is valid for one run of one manager. The identity has three fields: cluster id, broker id,
incarnation. The request's signature binds a response to its request.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from uuid import UUID

SECRET_ID_HEADER = "rlm-secret-id"  # noqa: S105 - the name of a header
TIME_HEADER = "rlm-time-ms"
NONCE_HEADER = "rlm-nonce"
TARGET_HEADER = "rlm-target"
SIGNATURE_HEADER = "rlm-signature"
CLUSTER_ID_HEADER = "rlm-cluster-id"
BROKER_ID_HEADER = "rlm-broker-id"
INCARNATION_HEADER = "rlm-incarnation"
REFUSAL_HEADER = "rlm-refusal"

NONCE_BYTES = 16
SIGNATURE_CHARACTERS = 64
_REQUEST = b"rlm-request-1"
_RESPONSE = b"rlm-answer-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerIdentity:
    """Represents one run of one manager of one cluster."""

    cluster_id: str
    broker_id: int
    incarnation: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """Represents the signed parts of a request. `path` includes the query, as sent."""

    method: str
    path: bytes
    body: bytes
    time_ms: int
    nonce: bytes
    target: UUID

    def signature(self, key: bytes) -> str:
        """Return the request's signature with the secret `key`, in hex."""
        return _sign(
            key,
            _REQUEST,
            self.method.encode("ascii"),
            self.path,
            hashlib.sha256(self.body).digest(),
            str(self.time_ms).encode("ascii"),
            self.nonce,
            self.target.bytes,
        )


def response_signature(
    key: bytes, *, request_signature: str, status: int, body: bytes, identity: ManagerIdentity
) -> str:
    """Return the signature, in hex, of the response to the request with `request_signature`."""
    return _sign(
        key,
        _RESPONSE,
        request_signature.encode("ascii"),
        str(status).encode("ascii"),
        hashlib.sha256(body).digest(),
        identity.cluster_id.encode("utf-8"),
        str(identity.broker_id).encode("ascii"),
        identity.incarnation.bytes,
    )


def is_same(one: str, other: str) -> bool:
    """Return whether two signatures are equal, in constant time."""
    return hmac.compare_digest(one.encode("utf-8"), other.encode("utf-8"))


def _sign(key: bytes, *fields: bytes) -> str:
    framed = b"".join(len(each).to_bytes(4, "big") + each for each in fields)
    return hmac.new(key, framed, hashlib.sha256).hexdigest()
