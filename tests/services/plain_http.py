"""HTTP requests to processes of this host, without TLS."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import httpx

# httpx would load the certificates of public authorities for each request, which takes 45 ms of
# processor time.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def get(
    url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 5.0
) -> httpx.Response:
    """Return the response, of any status. Raises httpx.HTTPError if there is none."""
    return httpx.get(
        url, headers=headers, timeout=timeout_s, trust_env=False, verify=_NO_AUTHORITIES
    )
