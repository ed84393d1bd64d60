"""The servers of stores: all tests here share one of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings
from tests.services.hdfs import USER, HdfsCluster
from tests.services.provider import ServiceProvider
from tests.services.s3 import S3Server, credentials_environment


@pytest.fixture(scope="package")
def s3_server(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    with services.s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def s3_bucket(s3_server: S3Server) -> str:
    """An empty bucket for the tests of one module: modules run in any order."""
    name = f"segments-{uuid4()}"
    s3_server.create_bucket(name)
    return name


@pytest.fixture
def s3_settings(s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> S3Settings:
    """Settings for the module's bucket, with the smallest parts that S3 accepts.

    The server's credentials are where the SDK looks for them.
    """
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)
    return S3Settings(
        bucket=s3_bucket,
        endpoint_url=s3_server.url,
        path_style=True,
        part_bytes=5 << 20,
        attempt_timeout_ms=60_000,
    )


@pytest.fixture(scope="package")
def hdfs(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HdfsCluster]:
    with services.hdfs(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture
def hdfs_settings(hdfs: HdfsCluster) -> HdfsSettings:
    return HdfsSettings(namenode_urls=(hdfs.url,), root=hdfs.root, user=USER, timeout_ms=10_000)
