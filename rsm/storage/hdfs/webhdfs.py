"""Sends WebHDFS requests to the active NameNode, and to the DataNodes that it names.

Encodes the URLs and decodes the errors. Repeats a request only if a NameNode is unreachable or not
active, at the next NameNode. Supports simple authentication, but not Kerberos.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.broken_reads import RangeBody
from rsm.storage.chunk_storage import RequestObserver, ignore_request
from rsm.storage.hdfs.settings import HdfsSettings

_MAX_DOCUMENT_BYTES = 64 << 20
_READ_BYTES = 1 << 20
_NOT_ACTIVE = frozenset({"StandbyException", "ObserverRetryOnActiveException"})


class RemoteError(Exception):
    """Represents a node's refusal: `name` is that of its Java exception. Callers convert it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Represents a request's body, in pieces of `length_bytes` in total.

    If the length is None, the body is sent with HTTP's chunked encoding.
    """

    length_bytes: int | None
    pieces: Iterable[bytes | memoryview]


class WebHdfs:
    """Represents an HDFS cluster, over its REST interface. Thread-safe.

    All methods raise RetriableError, CorruptError and RemoteError.
    """

    def __init__(
        self, settings: HdfsSettings, *, observe: RequestObserver = ignore_request
    ) -> None:
        self._settings = settings
        self._observe = observe
        self._timeout_s = settings.timeout_ms / 1000
        self._active = settings.namenode_urls[0]

    def ask(self, method: str, path: str, op: str, **parameters: object) -> Mapping[str, Any]:
        """Send a request to the NameNode; return its JSON, which is empty for an empty body."""
        with self._namenode(method, path, op, parameters) as response:
            return self._document(response)

    def send(self, method: str, path: str, op: str, body: Body, **parameters: object) -> None:
        """Send content to the DataNode that the NameNode chooses.

        Errors of `body` pass through, unless they are OSErrors; the file may then be incomplete.
        """
        location = self._redirection(method, path, op, parameters)
        headers = {"Content-Type": "application/octet-stream"}
        if body.length_bytes is not None:
            headers["Content-Length"] = str(body.length_bytes)
        with self._request(method, location, body.pieces, headers) as response:
            self._document(response)

    @contextmanager
    def read(self, path: str, positions: ByteRange) -> Iterator[RangeBody]:
        """Request the bytes at `positions`, fewer at the file's end."""
        parameters = {"offset": positions.start_position, "length": len(positions)}
        location = self._redirection("GET", path, "OPEN", parameters)
        with self._request("GET", location) as response:
            if response.status != 200:
                self._document(response)
            yield RangeBody(pieces=_pieces(response), length_bytes=response.length)

    def _redirection(
        self, method: str, path: str, op: str, parameters: Mapping[str, object]
    ) -> str:
        with self._namenode(method, path, op, parameters) as response:
            location = response.getheader("Location")
            if location is None:
                self._document(response)
                raise RetriableError(
                    "cannot find a DataNode: the NameNode sent no redirect", path=path, op=op
                )
            return location

    @contextmanager
    def _namenode(
        self, method: str, path: str, op: str, parameters: Mapping[str, object]
    ) -> Iterator[HTTPResponse]:
        query = urlencode({"op": op, "user.name": self._settings.user, **parameters})
        target = f"/webhdfs/v1{quote(path)}?{query}"
        others = [url for url in self._settings.namenode_urls if url != self._active]
        for url in (self._active, *others):
            last = url == (others or [self._active])[-1]
            with ExitStack() as stack:
                try:
                    response = stack.enter_context(self._request(method, url + target))
                    if response.status >= 400 and not last:
                        self._document(response)
                except RemoteError as error:
                    if error.name not in _NOT_ACTIVE:
                        raise
                    continue
                except (RetriableError, OSError, HTTPException):
                    if last:
                        raise
                    continue
                self._active = url
                yield response
                return

    @contextmanager
    def _request(
        self,
        method: str,
        url: str,
        pieces: Iterable[bytes | memoryview] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[HTTPResponse]:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        self._observe(method)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", pieces, dict(headers or {}))
            with connection.getresponse() as response:
                yield response
        except (OSError, HTTPException) as error:
            raise RetriableError(
                "the request to HDFS failed",
                node=parts.netloc,
                reason=str(error) or type(error).__name__,
            ) from error
        finally:
            connection.close()

    def _document(self, response: HTTPResponse) -> Mapping[str, Any]:
        text = self._content(response, _MAX_DOCUMENT_BYTES)
        document: object = {}
        if text:
            try:
                document = json.loads(text)
            except (ValueError, RecursionError) as error:
                if response.status < 400:
                    raise CorruptError(
                        "HDFS did not return JSON", status=response.status
                    ) from error
        if not isinstance(document, dict):
            raise CorruptError("HDFS did not return a JSON object", status=response.status)
        if response.status >= 400:
            remote = document.get("RemoteException")
            remote = remote if isinstance(remote, dict) else {}
            message = str(remote.get("message", "")).partition("\n")[0]
            raise RemoteError(remote.get("exception", f"HTTP {response.status}"), message)
        return document

    def _content(self, response: HTTPResponse, most_bytes: int) -> bytes:
        deadline_s = time.monotonic() + self._timeout_s
        pieces = []
        left_bytes = most_bytes
        while piece := response.read(min(_READ_BYTES, left_bytes)):
            pieces.append(piece)
            left_bytes -= len(piece)
            if time.monotonic() > deadline_s:
                raise RetriableError("HDFS responds too slowly")
        return b"".join(pieces)


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := response.read(_READ_BYTES):
            yield piece
    except (OSError, HTTPException) as error:
        raise RetriableError(
            "HDFS ended its response early", reason=str(error) or type(error).__name__
        ) from error
