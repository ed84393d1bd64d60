"""Requests to an application without a server."""

from __future__ import annotations

import asyncio

import httpx
from starlette.types import ASGIApp


def get(app: ASGIApp, path: str) -> httpx.Response:
    """The application's answer to a GET."""
    return _ask(app, "GET", path)


def post(app: ASGIApp, path: str) -> httpx.Response:
    """The application's answer to a POST without a body."""
    return _ask(app, "POST", path)


def _ask(app: ASGIApp, method: str, path: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path)

    return asyncio.run(ask())
