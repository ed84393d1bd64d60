"""The jobs reach the store that `rlm run` reaches, by the same keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm.config.stores.storage import StorageConfig
from rsm.segment.errors import InvalidConfigError
from spark_tools.store_options import KEYS, store_settings, store_url

_BACKEND = "rsm.config.storage.backend"
_STORE = "rsm.config.storage."


STORES: list[dict[str, str]] = [
    {"backend": "filesystem", "filesystem.root": "{directory}"},
    {"backend": "azure", "azure.container.name": "c", "azure.connection.string": "Key=x"},
    {
        "backend": "azure",
        "azure.container.name": "c",
        "azure.connection.string": "Key=x",
        "azure.timeout.ms": "7",
    },
    {"backend": "gcs", "gcs.bucket.name": "b"},
    {
        "backend": "gcs",
        "gcs.bucket.name": "b",
        "gcs.endpoint.url": "http://127.0.0.1:1",
        "gcs.credentials.default": "False",
        "gcs.timeout.ms": "7",
        "gcs.retry.timeout.ms": "8",
    },
    {"backend": "gcs", "gcs.bucket.name": "b", "gcs.credentials.path": "{directory}/key.json"},
    {"backend": "hdfs", "hdfs.namenode.urls": "http://a:1", "hdfs.root": "/cold"},
    {
        "backend": "hdfs",
        "hdfs.namenode.urls": "http://a:1/, http://b:2",
        "hdfs.root": "/cold",
        "hdfs.user": "tiering",
        "hdfs.timeout.ms": "7",
    },
    {"backend": "s3", "s3.bucket.name": "b"},
    {
        "backend": "s3",
        "s3.bucket.name": "b",
        "s3.endpoint.url": "http://127.0.0.1:1",
        "s3.region": "r",
        "s3.path.style.access.enabled": "yes",
        "s3.api.call.attempt.timeout": "7",
        "s3.max.attempts": "8",
    },
]


@pytest.mark.parametrize("options", STORES)
def test_store_when_configured_as_for_rlm_run_then_the_same(
    options: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "key.json").write_text("{}")
    values = {
        _STORE + key: value.replace("{directory}", str(tmp_path)) for key, value in options.items()
    }

    found = store_settings(values)

    assert found == StorageConfig.model_validate(values).store()


class Asked(dict[str, str]):
    """Notes what is asked for."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)


def test_keys_when_each_store_is_configured_then_they_are_all_that_is_read() -> None:
    read: set[str] = set()
    for options in STORES:
        asked = Asked({_STORE + key: value for key, value in options.items()})
        store_settings(asked)
        read |= asked.names

    assert read == KEYS


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"backend": "azure", "azure.container.name": "c"}, "azure.connection.string"),
        ({"backend": "azure", "azure.connection.string": "x"}, "azure.container.name"),
        ({"backend": "gcs"}, "gcs.bucket.name"),
        ({"backend": "hdfs", "hdfs.root": "/cold"}, "hdfs.namenode.urls"),
        ({"backend": "hdfs", "hdfs.namenode.urls": "http://a:1"}, "hdfs.root"),
        (
            {"backend": "gcs", "gcs.bucket.name": "b", "gcs.credentials.default": "maybe"},
            "gcs.credentials.default",
        ),
        (
            {"backend": "azure", "azure.container.name": "c", "azure.connection.string": ""},
            "azure.connection.string",
        ),
        ({"backend": "tape"}, "filesystem, azure, gcs, hdfs or s3"),
    ],
)
def test_store_when_something_is_missing_or_wrong_then_named(
    options: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        store_settings({_STORE + key: value for key, value in options.items()})


def test_store_when_it_has_a_secret_then_never_shown() -> None:
    found = store_settings(
        {
            _BACKEND: "azure",
            _STORE + "azure.container.name": "c",
            _STORE + "azure.connection.string": "AccountKey=hush",
        }
    )

    assert "hush" not in repr(found)


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({"backend": "filesystem", "filesystem.root": "/srv/a b"}, "file:///srv/a%20b/cold"),
        ({"backend": "s3", "s3.bucket.name": "b"}, "s3://b/cold"),
        (
            {
                "backend": "s3",
                "s3.bucket.name": "b",
                "s3.endpoint.url": "https://hush:hush@s3.example:9000/x?token=hush#hush",
            },
            "s3://b/cold at https://s3.example:9000/x",
        ),
        (
            {"backend": "s3", "s3.bucket.name": "b", "s3.endpoint.url": "hush:hush@s3.example"},
            "s3://b/cold",
        ),
        (
            {
                "backend": "azure",
                "azure.container.name": "c",
                "azure.connection.string": "AccountName=acme;AccountKey=hush==",
            },
            "azure://acme/c/cold",
        ),
        (
            {
                "backend": "azure",
                "azure.container.name": "c",
                "azure.connection.string": "BlobEndpoint=https://x.example/;"
                "SharedAccessSignature=sv=1&sig=hush",
            },
            "azure://x.example/c/cold",
        ),
        ({"backend": "gcs", "gcs.bucket.name": "b"}, "gs://b/cold"),
        (
            {
                "backend": "hdfs",
                "hdfs.namenode.urls": "http://hush@a:1/,http://[::1]:2",
                "hdfs.root": "/tiered",
            },
            "hdfs:/tiered/cold at http://a:1, http://[::1]:2",
        ),
    ],
)
def test_url_when_of_any_store_then_its_place_and_no_secret(
    options: dict[str, str], url: str
) -> None:
    settings = store_settings({f"{_STORE}{key}": value for key, value in options.items()})

    assert store_url(settings, "cold") == url
