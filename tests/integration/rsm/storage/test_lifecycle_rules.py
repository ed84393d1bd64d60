"""Lifecycle rules as the SDKs of S3 and GCS return them, from a stand-in server.

The S3 and GCS servers of the other tests keep no such rules.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rsm.segment.errors import RetriableError
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.gcs.storage import GcsChunkStorage
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage

_RULES = b"""<?xml version="1.0" encoding="UTF-8"?>
<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Rule><ID>tidy</ID><Status>Enabled</Status><Filter><Prefix>rlm/</Prefix></Filter>
    <Expiration><Days>30</Days></Expiration></Rule>
</LifecycleConfiguration>"""


@contextmanager
def _answering(status: int, content: bytes, content_type: str) -> Iterator[str]:
    """Run a server that answers every request with this body; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep the output of the tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _s3(url: str, monkeypatch: pytest.MonkeyPatch) -> S3ChunkStorage:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    settings = S3Settings(
        bucket="segments", endpoint_url=url, region="us-east-1", path_style=True, max_attempts=1
    )
    return S3ChunkStorage(S3Bucket(settings))


def _s3_error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode()


def test_s3_rules_when_the_bucket_has_one_then_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        _answering(200, _RULES, "application/xml") as url,
        closing(_s3(url, monkeypatch)) as storage,
    ):
        rules = storage.lifecycle_rules()

    assert [str(each) for each in rules] == [
        "rule 'tidy' for prefix 'rlm/': deletes objects 30 days after they were written"
    ]


def test_s3_rules_when_the_bucket_has_none_then_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = _s3_error("NoSuchLifecycleConfiguration")
    with (
        _answering(404, answer, "application/xml") as url,
        closing(_s3(url, monkeypatch)) as storage,
    ):
        assert storage.lifecycle_rules() == ()


def test_s3_rules_when_they_may_not_be_read_then_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        _answering(403, _s3_error("AccessDenied"), "application/xml") as url,
        closing(_s3(url, monkeypatch)) as storage,
        pytest.raises(RetriableError, match="get_bucket_lifecycle_configuration"),
    ):
        storage.lifecycle_rules()


def _gcs(url: str) -> GcsChunkStorage:
    settings = GcsSettings(
        bucket="segments", endpoint_url=url, is_anonymous=True, retry_timeout_ms=0
    )
    return GcsChunkStorage(settings)


def test_gcs_rules_when_the_bucket_has_one_then_it_is_named() -> None:
    bucket = {
        "name": "segments",
        "lifecycle": {
            "rule": [
                {
                    "action": {"type": "Delete"},
                    "condition": {"age": 30, "matchesPrefix": ["rlm/"]},
                },
                {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
            ]
        },
    }
    with (
        _answering(200, json.dumps(bucket).encode(), "application/json") as url,
        closing(_gcs(url)) as storage,
    ):
        rules = storage.lifecycle_rules()

    assert [str(each) for each in rules] == [
        "rule '1' for prefix 'rlm/': deletes objects if age=30"
    ]


def test_gcs_rules_when_they_may_not_be_read_then_says_so() -> None:
    answer = json.dumps({"error": {"code": 403, "message": "no storage.buckets.get"}}).encode()
    with (
        _answering(403, answer, "application/json") as url,
        closing(_gcs(url)) as storage,
        pytest.raises(RetriableError, match="segments"),
    ):
        storage.lifecycle_rules()
