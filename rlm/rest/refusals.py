"""Lists why managers refuse requests, and explains each reason to users.

Each text begins with the refusal's name, under which docs/operations.md lists it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_READINESS = "Look at the readiness of that manager in `rlm processes`"
_VERSIONS = "Check that this command and the manager have the same version"
_NETWORK = (
    "Check the network between this host and that address: something changes or repeats requests"
)
_AGAIN = "Run the command again"
_NAME = re.compile(r"[a-z0-9_]{1,40}")


class RequestRefusal(Enum):
    """Represents why a request is refused; the value is in the header and the metric's label."""

    UNSIGNED = "unsigned"
    MALFORMED = "malformed"
    BODY_TOO_LARGE = "body_too_large"
    NO_SECRET = "no_secret"  # noqa: S105 - a reason
    UNKNOWN_SECRET = "unknown_secret"  # noqa: S105 - a reason
    WRONG_TARGET = "wrong_target"
    WRONG_SIGNATURE = "wrong_signature"
    OUTSIDE_WINDOW = "outside_window"
    REPLAYED = "replayed"
    BUSY = "busy"

    @property
    def status(self) -> int:
        """Return the HTTP status of the refusal."""
        return _STATUS.get(self, _UNAUTHORIZED)


_STATUS = {
    RequestRefusal.MALFORMED: 400,
    RequestRefusal.BODY_TOO_LARGE: 413,
    RequestRefusal.NO_SECRET: 503,
    RequestRefusal.WRONG_TARGET: 421,
    RequestRefusal.BUSY: 503,
}
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalText:
    """Represents why a request was refused, and what to do."""

    reason: str
    advice: str


_MEANINGS = {
    RequestRefusal.UNSIGNED: ("the manager accepts only signed requests", _VERSIONS),
    RequestRefusal.MALFORMED: ("the manager cannot read the signature", _VERSIONS),
    RequestRefusal.BODY_TOO_LARGE: ("the request is too large", _VERSIONS),
    RequestRefusal.NO_SECRET: ("the manager has not read the cluster's secret yet", _READINESS),
    RequestRefusal.UNKNOWN_SECRET: (
        "the manager does not know the secret, or no longer accepts it",
        f"{_READINESS}: it may not follow the metadata topic",
    ),
    RequestRefusal.WRONG_TARGET: ("the manager restarted a moment ago", _AGAIN),
    RequestRefusal.WRONG_SIGNATURE: ("the signature does not match the request", _NETWORK),
    RequestRefusal.OUTSIDE_WINDOW: (
        "the manager or the caller has not read the metadata topic for two minutes",
        _READINESS,
    ),
    RequestRefusal.REPLAYED: ("the manager has received this request before", _NETWORK),
    RequestRefusal.BUSY: (
        "the manager has received too many signed requests in the last few minutes",
        "Find the program that sends that many requests, and run the command again in four minutes",
    ),
}


def refusal_text(header: str) -> RefusalText:
    """Return the text for a response's reason; any program may have sent the response."""
    try:
        reason = RequestRefusal(header)
    except ValueError:
        name = header if _NAME.fullmatch(header) else "unknown"
        return RefusalText(
            reason=f"{name}: this version does not know that reason", advice=_VERSIONS
        )
    meaning, advice = _MEANINGS[reason]
    return RefusalText(reason=f"{reason.value}: {meaning}", advice=advice)
