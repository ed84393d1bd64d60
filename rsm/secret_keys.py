"""Knows by its key which setting is a secret. Pure."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"password|passphrase|secret|private|token|key\.pem|oauthbearer\.config|connection\.string"
)


def is_secret(key: str) -> bool:
    """Return whether the value of this key must not be shown."""
    return _SECRET.search(key) is not None
