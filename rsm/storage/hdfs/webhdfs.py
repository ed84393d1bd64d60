"""WebHDFS: requests to the active name node, and to the data nodes that it names.

Encodes the URLs and decodes the errors. It repeats a request only at the next name node, after an
unreachable or standby one. Authentication is simple, without Kerberos.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
    """A node's refusal, with the short name of its Java exception; callers convert it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A request's body: exactly `length_bytes` in pieces; None if it is sent in HTTP's chunks."""

    length_bytes: int | None
    pieces: Iterable[bytes | memoryview]


class WebHdfs:
    """The name nodes and data nodes of one HDFS, over its REST interface. Thread-safe.

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
        """Send a request to the name node; return its JSON, empty for an empty response."""
        with self._namenode(method, path, op, parameters) as response:
            return self._document(response)

    def send(self, method: str, path: str, op: str, body: Body, **parameters: object) -> None:
        """Send content to the data node that the name node chooses.

        Errors of `body` pass through unchanged; the file may then contain a part of it.
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
                raise RetriableError("the name node named no data node", path=path, op=op)
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
            try:
                with self._request(method, url + target) as response:
                    if response.status < 400 or last:
                        self._active = url
                        yield response
                        return
                    self._document(response)
            except RemoteError as error:
                if last or error.name not in _NOT_ACTIVE:
                    raise
            except RetriableError:
                if last:
                    raise

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
            yield connection.getresponse()
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
                raise RetriableError("HDFS answers too slowly")
        return b"".join(pieces)


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := response.read(_READ_BYTES):
            yield piece
    except (OSError, HTTPException) as error:
        raise RetriableError(
            "HDFS ended its response early", reason=str(error) or type(error).__name__
        ) from error
