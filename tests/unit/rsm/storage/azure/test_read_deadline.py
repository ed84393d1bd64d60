"""How long a read from Azure may take."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.azure.storage import AzureChunkStorage

_PIECE_BYTES = 300_000
_PIECE_COUNT = 8
_WHOLE = ByteRange(start_position=0, end_position=_PIECE_COUNT * _PIECE_BYTES)


@contextmanager
def blob_server(pause_s: float, *, unanswered_count: int) -> Iterator[str]:
    """Yield the connection string of a server that pauses before each piece of a blob.

    It does not answer the first `unanswered_count` requests.
    """
    ended = threading.Event()
    unanswered = iter(range(unanswered_count))

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if next(unanswered, None) is not None:
                self.close_connection = True
                return
            self.send_response(206)
            self.send_header("Content-Length", str(len(_WHOLE)))
            self.send_header("Content-Range", f"bytes 0-{len(_WHOLE) - 1}/{len(_WHOLE)}")
            self.send_header("x-ms-blob-type", "BlockBlob")
            self.end_headers()
            try:
                for _ in range(_PIECE_COUNT):
                    ended.wait(pause_s)
                    self.wfile.write(bytes(_PIECE_BYTES))
            except OSError:
                self.close_connection = True  # The client has given up.

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield (
                "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;"
                f"BlobEndpoint=http://127.0.0.1:{server.server_port}/a;"
            )
        finally:
            ended.set()
            server.shutdown()
            thread.join()


def _read(*, pause_s: float, timeout_ms: int, unanswered_count: int = 0) -> bytes:
    with blob_server(pause_s, unanswered_count=unanswered_count) as connection_string:
        settings = AzureSettings(
            connection_string=connection_string,
            container="c",
            attempt_timeout_ms=timeout_ms,
            max_attempts=1 + unanswered_count,
        )
        with closing(AzureChunkStorage(settings)) as storage:
            return storage.read_range("a", _WHOLE)


@pytest.mark.parametrize("unanswered_count", [0, 1])
def test_read_when_each_piece_is_in_time_but_not_the_whole_then_it_ends(
    unanswered_count: int,
) -> None:
    with pytest.raises(RetriableError, match="the store responds too slowly"):
        _read(pause_s=0.2, timeout_ms=600, unanswered_count=unanswered_count)


def test_read_when_the_whole_is_in_time_then_all_of_it() -> None:
    assert _read(pause_s=0.01, timeout_ms=30_000) == bytes(len(_WHOLE))
