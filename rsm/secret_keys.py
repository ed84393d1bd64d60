"""Knows by its key which setting is a secret, and masks credentials in addresses. Pure."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"password|passphrase|secret|private|token|key\.pem|oauthbearer\.config|connection\.string"
)
_CREDENTIALS = re.compile(r"^([^\s/]*//)?.*@")
NOT_SHOWN = "(not shown)"


def is_secret(key: str) -> bool:
    """Return whether the value of this key must not be shown."""
    return _SECRET.search(key) is not None


def without_credentials(text: str) -> str:
    """Mask what is before the last `@` of an address, where a user and a password may be."""
    return _CREDENTIALS.sub(rf"\1{NOT_SHOWN}@", text)
