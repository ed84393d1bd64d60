"""Recognizes secret settings by their keys, and masks credentials in addresses. Pure."""

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
    """Mask the user and password of an address: the text before its last `@` except the scheme."""
    return _CREDENTIALS.sub(rf"\1{NOT_SHOWN}@", text)
