"""An S3 server with a bucket, as the store of a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.services.provider import ServiceProvider
from tests.services.s3 import S3Server

BUCKET = "segments"


@contextmanager
def s3_with_bucket(services: ServiceProvider, directory: Path) -> Iterator[S3Server]:
    """Run a separate server with an empty bucket until the block ends."""
    with services.s3(directory) as server:
        server.create_bucket(BUCKET)
        yield server


def s3_store(server: S3Server) -> Mapping[str, str]:
    """Return settings of a host whose store is the bucket; the environment has credentials."""
    return {
        "rsm.config.storage.backend": "s3",
        "rsm.config.storage.s3.bucket.name": BUCKET,
        "rsm.config.storage.s3.endpoint.url": server.url,
        "rsm.config.storage.s3.path.style.access.enabled": "true",
    }
