"""How the account of an offload segment names its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.pulsar.driver_metadata import driver_metadata
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings, StoreSettings

KEY = "c2VjcmV0"
ACCOUNT = f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={KEY}==;"


def azure(connection_string: str) -> AzureSettings:
    return AzureSettings(connection_string=connection_string, container="logs")


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        (S3Settings(bucket="logs"), {"bucket": "logs"}),
        (
            S3Settings(bucket="logs", region="eu-west-1", endpoint_url="https://s3.local:9000"),
            {
                "bucket": "logs",
                "region": "eu-west-1",
                "serviceEndpoint": "https://s3.local:9000",
            },
        ),
        (GcsSettings(bucket="logs"), {"bucket": "logs"}),
        (
            GcsSettings(bucket="logs", endpoint_url="http://[::1]:4443"),
            {"bucket": "logs", "serviceEndpoint": "http://[::1]:4443"},
        ),
        (
            azure(f"{ACCOUNT}EndpointSuffix=core.usgovcloudapi.net"),
            {"bucket": "logs", "serviceEndpoint": "https://acme.blob.core.usgovcloudapi.net"},
        ),
        (
            azure(ACCOUNT),
            {"bucket": "logs", "serviceEndpoint": "https://acme.blob.core.windows.net"},
        ),
        (
            azure(f"{ACCOUNT}BlobEndpoint=http://127.0.0.1:10000/acme;"),
            {"bucket": "logs", "serviceEndpoint": "http://127.0.0.1:10000/acme"},
        ),
        (azure("nonsense"), {"bucket": "logs"}),
        (
            HdfsSettings(
                namenode_urls=("http://n1:9870", "http://n2:9870"), root="/kafka", user="rlm"
            ),
            {"storageBasePath": "/kafka", "serviceEndpoint": "http://n1:9870,http://n2:9870"},
        ),
        (FilesystemSettings(root=Path("/mnt/store")), {"storageBasePath": "/mnt/store"}),
    ],
)
def test_store_when_named_then_by_pulsars_properties_without_unset_ones(
    store: StoreSettings, expected: dict[str, str]
) -> None:
    assert driver_metadata(store) == expected


@pytest.mark.parametrize(
    "store",
    [
        S3Settings(bucket="logs", endpoint_url=f"https://user:{KEY}@s3.local"),
        GcsSettings(bucket="logs", endpoint_url=f"https://gcs.local?token={KEY}"),
        azure(ACCOUNT),
        azure(f"BlobEndpoint=https://acme.local?sig={KEY};SharedAccessSignature=sig={KEY}"),
        HdfsSettings(namenode_urls=(f"http://u:{KEY}@n1:9870",), root="/kafka", user="rlm"),
    ],
)
def test_store_when_its_settings_have_a_secret_then_no_property_has_it(
    store: StoreSettings,
) -> None:
    found = driver_metadata(store)

    assert KEY not in str(found)
    assert found["serviceEndpoint"]
