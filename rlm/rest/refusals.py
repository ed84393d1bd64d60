"""Explain managers' refusals to the users of refused commands.

Each text begins with the refusal's name, under which docs/operations.md lists it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlm.rest.signed_api import RequestRefusal

_READINESS = "the readiness of that manager in `rlm processes`"
_VERSIONS = "that this command and the manager are of one version"
_NETWORK = "the network between this host and that address: it changes requests"
_AGAIN = "run the command again"
_NAME = re.compile(r"[a-z0-9_]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalText:
    """Represents why a request was refused, and what to check."""

    reason: str
    check: str


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
    RequestRefusal.WRONG_SIGNATURE: ("the signature is not of this request", _NETWORK),
    RequestRefusal.OUTSIDE_WINDOW: (
        "the manager or this command has not read the metadata topic for two minutes",
        _READINESS,
    ),
    RequestRefusal.REPLAYED: ("the manager has received this request before", _NETWORK),
    RequestRefusal.BUSY: (
        "the manager has received too many signed requests in the last minutes",
        "which program sends that many requests, and run the command again in four minutes",
    ),
}


def refusal_text(header: str) -> RefusalText:
    """Return the text for the reason in a response, which any program may have sent."""
    try:
        reason = RequestRefusal(header)
    except ValueError:
        name = header if _NAME.fullmatch(header) else "unknown"
        return RefusalText(
            reason=f"{name}: a reason that this version does not know", check=_VERSIONS
        )
    meaning, check = _MEANINGS[reason]
    return RefusalText(reason=f"{reason.value}: {meaning}", check=check)
