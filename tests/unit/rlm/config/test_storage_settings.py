"""The keys of stores: what each backend requires, and the settings that its binding gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.load import load_command_config
from rsm.config.storage import StorageConfig
from rsm.segment.errors import InvalidConfigError
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.filesystem.file_access import FileAccess
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings, ServerSideEncryption
from rsm.storage.settings import FaultPlan, FilesystemSettings, RehearsalSettings

AZURE = {
    "backend": "azure",
    "azure.container.name": "segments",
    "azure.connection.string": "AccountName=a;AccountKey=hush-hush",
}
GCS = {"backend": "gcs", "gcs.bucket.name": "segments"}
HDFS = {"backend": "hdfs", "hdfs.namenode.urls": "http://a:9870, http://b:9870/"}
S3 = {"backend": "s3", "s3.bucket.name": "segments"}


def load(directory: Path, **settings: str) -> StorageConfig:
    lines = [f"rsm.config.storage.{key}={value}" for key, value in settings.items()]
    path = directory / "rlm.properties"
    path.write_text("\n".join(["bootstrap.servers=a:1", *lines]))
    return load_command_config(path).required_storage()


def test_store_when_it_is_a_directory_then_its_root_is_handed_on(tmp_path: Path) -> None:
    config = load(tmp_path, **{"filesystem.root": "/store"})

    assert config.store() == FilesystemSettings(root=Path("/store"))
    assert config.rehearsal() == RehearsalSettings()


@pytest.mark.parametrize(("given", "name"), [(S3, "s3"), (AZURE, "azure")])
@pytest.mark.parametrize(
    ("memory_mib", "buffer_mib", "expected_mib"), [(192, 256, 96), (192, 32, 32), (64, None, 32)]
)
def test_store_when_streams_have_a_buffer_then_at_most_half_of_the_memory_of_uploads(
    tmp_path: Path,
    given: dict[str, str],
    name: str,
    memory_mib: int,
    buffer_mib: int | None,
    expected_mib: int,
) -> None:
    config = load(tmp_path, **given, **{f"{name}.upload.memory.bytes": f"{memory_mib}MiB"})

    store = config.store(None if buffer_mib is None else buffer_mib << 20)

    assert isinstance(store, S3Settings | AzureSettings)
    assert store.stream_memory_bytes == expected_mib << 20


@pytest.mark.parametrize("text", ["0644", "644"])
def test_store_when_a_file_mode_is_given_then_it_is_octal(tmp_path: Path, text: str) -> None:
    config = load(tmp_path, **{"filesystem.root": "/store", "filesystem.file.mode": text})

    assert config.file_access() == FileAccess(mode=0o644)
    assert config.file_access().directory_mode == 0o755


@pytest.mark.parametrize("text", ["", "0755", "0440", "640a", "1640", "0o640", "-1"])
def test_store_when_a_file_mode_is_none_then_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"filesystem\.file\.mode"):
        load(tmp_path, **{"filesystem.root": "/store", "filesystem.file.mode": text})


def test_store_when_it_is_s3_then_only_the_bucket_is_required(tmp_path: Path) -> None:
    assert load(tmp_path, **S3).store() == S3Settings(bucket="segments")


def test_store_when_it_is_hdfs_then_it_is_handed_on(tmp_path: Path) -> None:
    settings = {"hdfs.root": "/kafka", "hdfs.user": "me", "hdfs.timeout.ms": "1000"}

    assert load(tmp_path, **HDFS, **settings).store() == HdfsSettings(
        namenode_urls=("http://a:9870", "http://b:9870"), root="/kafka", user="me", timeout_ms=1_000
    )


def test_store_when_it_is_azure_then_it_is_handed_on_and_its_key_is_not_shown(
    tmp_path: Path,
) -> None:
    config = load(tmp_path, **AZURE, **{"azure.upload.block.size": "1048576"})

    settings = config.store()
    assert settings == AzureSettings(
        connection_string="AccountName=a;AccountKey=hush-hush",
        container="segments",
        part_bytes=1_048_576,
    )
    assert "hush" not in repr(config)
    assert "hush" not in repr(settings)


def test_store_when_it_is_gcs_then_only_the_bucket_is_required(tmp_path: Path) -> None:
    assert load(tmp_path, **GCS).store() == GcsSettings(bucket="segments")


def test_store_when_all_of_gcs_is_given_then_it_is_handed_on(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        **GCS,
        **{
            "gcs.endpoint.url": "http://127.0.0.1:4443",
            "gcs.credentials.default": "false",
            "gcs.resumable.upload.chunk.size": "524288",
            "gcs.timeout.ms": "1000",
            "gcs.retry.timeout.ms": "2000",
        },
    )

    assert config.store() == GcsSettings(
        bucket="segments",
        endpoint_url="http://127.0.0.1:4443",
        is_anonymous=True,
        part_bytes=524_288,
        attempt_timeout_ms=1_000,
        retry_timeout_ms=2_000,
    )


def test_store_when_all_of_s3_is_given_then_it_is_handed_on(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        **S3,
        **{
            "s3.endpoint.url": "http://127.0.0.1:7070",
            "s3.region": "eu-north-1",
            "s3.path.style.access.enabled": "true",
            "s3.storage.class": "STANDARD_IA",
            "s3.server.side.encryption": "aws:kms",
            "s3.kms.key.id": "alias/key",
            "s3.multipart.upload.part.size": "5242880",
            "s3.upload.memory.bytes": "10485760",
            "s3.api.call.attempt.timeout": "1000",
            "s3.max.attempts": "5",
        },
    )

    assert config.store() == S3Settings(
        bucket="segments",
        endpoint_url="http://127.0.0.1:7070",
        region="eu-north-1",
        path_style=True,
        storage_class="STANDARD_IA",
        encryption=ServerSideEncryption.SSE_KMS,
        kms_key_id="alias/key",
        part_bytes=5_242_880,
        upload_memory_bytes=10_485_760,
        stream_memory_bytes=5_242_880,
        attempt_timeout_ms=1_000,
        max_attempts=5,
    )


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("filesystem.root", {"backend": "filesystem"}),
        ("s3.bucket.name", {"backend": "s3"}),
        ("s3.bucket.name", {"backend": "s3", "s3.bucket.name": ""}),
        ("s3.endpoint.url", {**S3, "s3.endpoint.url": "127.0.0.1:7070"}),
        ("s3.endpoint.url", {**S3, "s3.endpoint.url": "https://me:secret@store"}),
        ("s3.multipart.upload.part.size", {**S3, "s3.multipart.upload.part.size": "5242879"}),
        ("s3.kms.key.id", {**S3, "s3.kms.key.id": "key"}),
        ("s3.server.side.encryption", {**S3, "s3.server.side.encryption": "rot13"}),
        ("azure.container.name", {**AZURE, "azure.container.name": ""}),
        ("azure.connection.string", {"backend": "azure", "azure.container.name": "c"}),
        ("gcs.bucket.name", {"backend": "gcs"}),
        (
            "gcs.resumable.upload.chunk.size",
            {**GCS, "gcs.resumable.upload.chunk.size": "300000"},
        ),
        ("hdfs.root", HDFS),
        ("hdfs.root", {**HDFS, "hdfs.root": "kafka"}),
        ("hdfs.namenode.urls", {"backend": "hdfs", "hdfs.root": "/kafka"}),
        ("hdfs.namenode.urls", {**HDFS, "hdfs.namenode.urls": "hdfs://a:9000"}),
        ("faulty.fail.share", {"filesystem.root": "/s", "faulty.fail.share": "1.1"}),
    ],
)
def test_store_when_a_setting_is_missing_or_wrong_then_it_is_named(
    tmp_path: Path, key: str, settings: dict[str, str]
) -> None:
    with pytest.raises(InvalidConfigError, match=rf"key=rsm\.config\.storage\.{key}\b"):
        load(tmp_path, **settings)


def test_rehearsal_when_given_then_is_handed_on(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        **{
            "filesystem.root": "/store",
            "slow.delay.ms": "30",
            "throttle.bytes.per.second": "1000",
            "throttle.requests.per.second": "10",
            "faulty.fail.share": "0.1",
            "faulty.flip.share": "0.01",
            "faulty.seed": "7",
            "faulty.while.file": "/broken",
            "read.only": "true",
        },
    )

    assert config.rehearsal() == RehearsalSettings(
        delay_ms=30,
        bytes_per_second=1_000,
        requests_per_second=10,
        faults=FaultPlan(fail_share=0.1, flip_share=0.01, seed=7),
        faults_while_file=Path("/broken"),
        is_read_only=True,
    )
