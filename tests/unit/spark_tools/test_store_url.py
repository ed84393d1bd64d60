"""A store's address for people, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.plugins.plugin import ClassName, Plugin
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings
from rsm.store_settings import Store
from spark_tools.store_url import store_url

_TAPE = ClassName(module="acme.stores", name="Tape")


@pytest.mark.parametrize(
    ("store", "url"),
    [
        (FilesystemSettings(root=Path("/srv/a b")), "file:///srv/a%20b/cold"),
        (S3Settings(bucket="b"), "s3://b/cold"),
        (
            S3Settings(
                bucket="b", endpoint_url="https://hush:hush@s3.example:9000/x?token=hush#hush"
            ),
            "s3://b/cold at https://s3.example:9000/x",
        ),
        (S3Settings(bucket="b", endpoint_url="hush:hush@s3.example"), "s3://b/cold"),
        (
            AzureSettings(container="c", connection_string="AccountName=acme;AccountKey=hush=="),
            "azure://acme/c/cold",
        ),
        (
            AzureSettings(
                container="c",
                connection_string="BlobEndpoint=https://x.example/;"
                "SharedAccessSignature=sv=1&sig=hush",
            ),
            "azure://x.example/c/cold",
        ),
        (GcsSettings(bucket="b"), "gs://b/cold"),
        (
            HdfsSettings(
                namenode_urls=("http://hush@a:1", "http://[::1]:2"), root="/tiered", user="rlm"
            ),
            "hdfs:/tiered/cold at http://a:1, http://[::1]:2",
        ),
        (
            Plugin(
                class_name=_TAPE,
                key="rsm.config.storage.backend",
                prefix="rsm.config.storage.",
                settings={"password": "hush"},
            ),
            "acme.stores:Tape/cold",
        ),
    ],
)
def test_url_when_of_any_store_then_its_place_and_no_secret(store: Store, url: str) -> None:
    assert store_url(store, "cold") == url
