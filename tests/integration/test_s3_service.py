"""The S3 server that other tests rely on, whichever provider this run has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.services.provider import ServiceProvider
from tests.services.s3 import S3Server
from tests.services.service import ServiceError

_BUCKET = "kept"
_SECRET = "secret-of-the-reader"  # noqa: S105 - of a server that only tests reach


@pytest.fixture
def server(services: ServiceProvider, tmp_path: Path) -> Iterator[S3Server]:
    with services.s3(tmp_path) as server:
        server.create_bucket(_BUCKET)
        yield server


def test_server_when_stopped_and_started_again_then_keeps_address_and_objects(
    server: S3Server,
) -> None:
    server.client().put_object(Bucket=_BUCKET, Key="a", Body=b"x")
    url = server.url

    server.stop()
    server.start()

    assert server.url == url
    assert server.client().get_object(Bucket=_BUCKET, Key="a")["Body"].read() == b"x"


def test_bucket_when_it_has_objects_then_they_are_files_and_new_files_are_objects(
    server: S3Server,
) -> None:
    server.client().put_object(Bucket=_BUCKET, Key="put", Body=b"x")
    directory = server.bucket_directory(_BUCKET)

    (directory / "written").write_bytes(b"y")

    assert (directory / "put").read_bytes() == b"x"
    assert server.client().get_object(Bucket=_BUCKET, Key="written")["Body"].read() == b"y"


def test_user_when_it_is_created_then_may_do_nothing_yet(server: S3Server) -> None:
    server.create_user("reader", _SECRET)

    with pytest.raises(ClientError, match="AccessDenied"):
        server.client("reader", _SECRET).list_objects_v2(Bucket=_BUCKET)


def test_user_when_its_name_is_taken_then_creation_fails(server: S3Server) -> None:
    server.create_user("reader", _SECRET)

    with pytest.raises(ServiceError, match="UserExists"):
        server.create_user("reader", "another-secret")
