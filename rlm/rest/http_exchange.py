"""Sends HTTP requests; limits the time and the size of each response.

The libraries' timeouts apply to each read: a server that sends a byte now and then would block a
caller for hours. So requests run in an event loop, where one timeout covers a whole request.
Requests ask for bodies without compression, and compressed bodies are never decoded: a few bytes
can decode to gigabytes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx

from rsm.segment.errors import CorruptError, RetriableError

_PORT_MAX = 65_535
_READ_S = 2.0
_RESPONSE_S = 15.0
_RESPONSE_MAX_BYTES = 64 << 20
_UNCOMPRESSED = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Represents a complete response of any status."""

    status: int
    headers: httpx.Headers
    body: bytes


class HttpExchange:
    """Represents an HTTP client. Thread-safe. Runs its own thread until `close`."""

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        *,
        read_s: float = _READ_S,
        response_s: float = _RESPONSE_S,
    ) -> None:
        """`read_s` bounds a connect and each read, `response_s` the whole request and response.

        `tls` is for HTTPS; None uses the system's trusted certificates.
        """
        self._read_s = read_s
        self._response_s = response_s
        self._tls = tls
        # Plain HTTP does not need the system's certificates, which take 50 ms to load.
        self._plain = self._client(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._secure: httpx.AsyncClient | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="http-exchange", daemon=True
        )
        self._thread.start()

    def send(self, method: str, url: httpx.URL, headers: Mapping[str, str]) -> HttpResponse:
        """Send a request.

        Raises RetriableError if no complete response arrives, and CorruptError if it is too large
        or compressed.
        """
        request = asyncio.run_coroutine_threadsafe(self._send(method, url, headers), self._loop)
        try:
            return request.result()
        except TimeoutError as error:
            raise RetriableError(f"no complete response within {self._response_s:g} s") from error
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise RetriableError(f"no connection within {self._read_s:g} s") from error
        except httpx.TimeoutException as error:
            raise RetriableError(f"no response within {self._read_s:g} s") from error
        # Invalid addresses raise InvalidURL, UnicodeError (a host) or ExceptionGroup (connects).
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError, ExceptionGroup) as error:
            raise RetriableError(reason_of(error)) from error

    def read(self, address: str, path: str) -> bytes:
        """Send an unsigned GET; return the body of the response, whatever its status.

        Raises the errors of `send`, and RetriableError for an invalid address. `address` is the
        registered one, which is empty if other hosts cannot reach the process.
        """
        if not address:
            raise RetriableError("the process has no address that other hosts can reach")
        try:
            url = httpx.URL(f"http://{address}{path}")
        except (httpx.InvalidURL, ValueError) as error:
            raise RetriableError("the process's address is invalid", address=address) from error
        return self.send("GET", url, {}).body

    def close(self) -> None:
        """Release connections and the thread."""
        for client in filter(None, (self._plain, self._secure)):
            asyncio.run_coroutine_threadsafe(client.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _send(self, method: str, url: httpx.URL, headers: Mapping[str, str]) -> HttpResponse:
        if url.port is not None and not 0 < url.port <= _PORT_MAX:
            raise RetriableError("the URL's port is invalid", port=url.port, max_port=_PORT_MAX)
        async with (
            asyncio.timeout(self._response_s),
            self._client_of(url).stream(method, url, headers=headers) as response,
        ):
            return HttpResponse(
                status=response.status_code,
                headers=response.headers,
                body=await _bounded(response),
            )

    def _client_of(self, url: httpx.URL) -> httpx.AsyncClient:
        """Return the client for the URL's scheme; call it in the event loop only."""
        if url.scheme != "https":
            return self._plain
        if self._secure is None:
            self._secure = self._client(self._tls or ssl.create_default_context())
        return self._secure

    def _client(self, tls: ssl.SSLContext) -> httpx.AsyncClient:
        # Managers run on the brokers' hosts, so a proxy from the environment must not be used.
        return httpx.AsyncClient(
            headers={"Accept-Encoding": _UNCOMPRESSED},
            timeout=self._read_s,
            trust_env=False,
            verify=tls,
        )


def reason_of(error: BaseException) -> str:
    """Return why a request failed, with the system's text, which the libraries' texts omit."""
    errors = [
        each
        for each in _with_causes(error)
        if isinstance(each, OSError)
        and each.strerror
        and not isinstance(each, ssl.SSLWantReadError | ssl.SSLWantWriteError)
    ]
    if not errors:
        return str(error) or type(error).__name__
    innermost = errors[-1]
    # These codes are unknown to os.strerror. For other errors, asyncio replaces the system's text.
    if isinstance(innermost, socket.gaierror | ssl.SSLError) or innermost.errno is None:
        return innermost.strerror or str(innermost)
    return os.strerror(innermost.errno)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all of its causes, each before its own causes."""
    seen: set[int] = set()
    left = [error]
    while left:
        found = left.pop(0)
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        if isinstance(found, BaseExceptionGroup):
            left.extend(found.exceptions)
        left.extend(each for each in (found.__cause__, found.__context__) if each is not None)


async def _bounded(response: httpx.Response) -> bytes:
    """Return the body as sent. Raises CorruptError if it is compressed or too large."""
    encodings = response.headers.get_list("content-encoding", split_commas=True)
    if any(each.strip().lower() != _UNCOMPRESSED for each in encodings):
        raise CorruptError(
            "cannot read the response: it is compressed", content_encoding=", ".join(encodings)
        )
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > _RESPONSE_MAX_BYTES:
            raise CorruptError(
                "cannot read the response: it is too large", max_bytes=_RESPONSE_MAX_BYTES
            )
    return bytes(body)
