"""Which NameNode is asked, when one of two does not answer as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rsm.segment.errors import RetriableError
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.hdfs.webhdfs import WebHdfs

_STANDBY = b'{"RemoteException": {"exception": "StandbyException", "message": "standby"}}'


@contextmanager
def name_node(status: int, body: bytes, *, length_bytes: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the URL of a node with one answer, and the requests that it receives.

    The node does not send the rest of an answer that is longer than `body`.
    """
    received: list[str] = []
    ended = threading.Event()

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(length_bytes))
            self.end_headers()
            self.wfile.write(body)
            if len(body) < length_bytes:
                ended.wait(10)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "length_bytes", "is_repeated"),
    [
        pytest.param(200, b"{", 2, False, id="the answer of the active one does not end"),
        pytest.param(403, _STANDBY, len(_STANDBY), True, id="the first one is a standby"),
        pytest.param(403, _STANDBY, 500, True, id="the refusal does not end"),
    ],
)
def test_request_when_the_first_of_two_name_nodes_fails_then_repeated_only_if_it_did_not_act(
    status: int, body: bytes, length_bytes: int, *, is_repeated: bool
) -> None:
    """A node that answered with success may have acted: the caller decides on a repetition."""
    with ExitStack() as stack:
        first, _ = stack.enter_context(name_node(status, body, length_bytes=length_bytes))
        second, received = stack.enter_context(name_node(200, b'{"a": 1}', length_bytes=8))
        settings = HdfsSettings(namenode_urls=(first, second), root="/", user="rlm", timeout_ms=200)
        hdfs = WebHdfs(settings)

        if is_repeated:
            assert hdfs.ask("GET", "/a", "GETFILESTATUS") == {"a": 1}
        else:
            with pytest.raises(RetriableError, match="the request to HDFS failed"):
                hdfs.ask("GET", "/a", "GETFILESTATUS")
        assert bool(received) == is_repeated
