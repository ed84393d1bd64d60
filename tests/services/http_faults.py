"""A proxy for an HTTP server; the proxy spoils requests and responses on demand.

Faults wait in a queue. A request takes the first fault that fits it, and passes unchanged if none
fits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.services.service import Service

_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>-</Message></Error>'
)
_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The fault of one request whose method is `method` and whose path and query contain `path`.

    `status`: the proxy answers instead of the server, with `code` or `body` in the body. `lost`:
    the server acts, and its response is lost. `cut_bytes`: only this many bytes of the response's
    body arrive, after a call of `then`. `hold`: the request waits until the proxy releases it.
    `spoil`: one byte of the request's body changes. `answer_header`: this header of the response
    has this value, or is absent.
    """

    method: str
    path: str = ""
    status: int = 0
    code: str = ""
    body: str = ""
    lost: bool = False
    cut_bytes: int | None = None
    hold: bool = False
    then: Callable[[], None] | None = None
    answer_header: tuple[str, str | None] | None = None
    spoil: bool = False


class FaultyProxy(Service):
    """A proxy that serves `url` within its `with` block. Thread-safe."""

    def __init__(self, upstream_port: int) -> None:
        self.requests: list[str] = []
        self.sent_bytes = 0
        self._faults: deque[Fault] = deque()
        self._lock = threading.Lock()
        self._server = _Server(upstream_port, self._take, self._count)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def expect(self, *faults: Fault) -> None:
        """Discard the recorded requests and the queued faults, and queue these."""
        with self._lock:
            self._faults = deque(faults)
            self.requests = []
            self.sent_bytes = 0

    def release(self) -> None:
        """Release all blocked requests, and block none from now on."""
        self._server.released.set()

    def unused(self) -> int:
        """Return how many faults no request has taken."""
        return len(self._faults)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _count(self, length_bytes: int) -> None:
        with self._lock:
            self.sent_bytes += length_bytes

    def _take(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.requests.append(method)
            for fault in self._faults:
                if fault.method == method and fault.path in path:
                    self._faults.remove(fault)
                    return fault
        return None


class _Server(ThreadingHTTPServer):
    """The server; its handlers share its state."""

    daemon_threads = True

    def __init__(
        self,
        upstream_port: int,
        take: Callable[[str, str], Fault | None],
        count: Callable[[int], None],
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream_port = upstream_port
        self.take = take
        self.count = count
        self.released = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing."""

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault = self.server.take(self.command, self.path)
        if fault is None:
            self._relay(*self._ask(body), None)
            return
        if fault.hold:
            self.server.released.wait(_DEADLINE_S)
        if fault.status:
            self._answer(fault)
            return
        if fault.spoil:
            body = body[:-1] + bytes([body[-1] ^ 1])
        answer, content = self._ask(body)
        if fault.lost:
            self.close_connection = True
        else:
            if fault.then is not None:
                fault.then()
            if fault.answer_header is not None:
                name, value = fault.answer_header
                del answer.headers[name]
                if value is not None:
                    answer.headers[name] = value
            self._relay(answer, content, fault.cut_bytes)

    def _ask(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        upstream = HTTPConnection("127.0.0.1", self.server.upstream_port, timeout=_DEADLINE_S)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(body)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        return answer, content

    def _relay(self, answer: HTTPResponse, content: bytes, cut_bytes: int | None) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                self.send_header(name, value)
        # the length in the response to a HEAD request is the object's
        self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(content)))
        self.end_headers()
        content = content if cut_bytes is None else content[:cut_bytes]
        self.wfile.write(content)
        self.server.count(len(content))
        self.close_connection = cut_bytes is not None

    def _answer(self, fault: Fault) -> None:
        content = (fault.body or _ERROR.format(code=fault.code)).encode()
        self.send_response_only(fault.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


for _method in ("DELETE", "GET", "HEAD", "POST", "PUT"):
    setattr(_Handler, f"do_{_method}", _Handler.pass_on)
