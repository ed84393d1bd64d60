"""Requests to an application without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
from starlette.types import ASGIApp


def get(app: ASGIApp, path: str) -> httpx.Response:
    """Return the application's answer to a GET."""
    return ask(app, "GET", path)


def post(app: ASGIApp, path: str) -> httpx.Response:
    """Return the application's answer to a POST without a body."""
    return ask(app, "POST", path)


def ask(
    app: ASGIApp,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    content: bytes = b"",
) -> httpx.Response:
    """Return the application's answer to any request."""
    sent = {name.encode(): value.encode() for name, value in (headers or {}).items()}

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, headers=sent, content=content)

    return asyncio.run(answer())
