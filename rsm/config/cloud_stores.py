"""Defines the settings of S3, Azure Blob Storage and Google Cloud Storage."""

from __future__ import annotations

from typing import TypeVar

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from rsm.config.choices import Backend
from rsm.config.store_choice import StoreChoice, required
from rsm.config.values import Count, File, HttpAddress, IntervalMs, SizeBytes
from rsm.storage.azure.settings import MAX_PART_BYTES as AZURE_MAX_PART_BYTES
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.gcs.settings import PART_UNIT_BYTES, GcsSettings
from rsm.storage.s3.settings import (
    MAX_PART_BYTES,
    MIN_PART_BYTES,
    S3Settings,
    ServerSideEncryption,
)

T = TypeVar("T")

AZURE_CONNECTION_KEY = "rsm.config.storage.azure.connection.string"
AZURE_CONTAINER_KEY = "rsm.config.storage.azure.container.name"
GCS_BUCKET_KEY = "rsm.config.storage.gcs.bucket.name"
S3_BUCKET_KEY = "rsm.config.storage.s3.bucket.name"


def stream_share(upload_memory_bytes: int, stream_buffer_bytes: int | None) -> int:
    """Return the memory for streams: half of the uploads' memory, or a smaller stream buffer.

    The rest is for copies, which never wait for content.
    """
    half_bytes = upload_memory_bytes // 2
    return half_bytes if stream_buffer_bytes is None else min(half_bytes, stream_buffer_bytes)


class S3Keys(StoreChoice):
    """The settings of an S3 bucket."""

    s3_bucket: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias=S3_BUCKET_KEY,
        description="Name of the bucket; required for `s3`. Credentials come from the SDK's "
        "default chain: the environment, shared files, or the role of the container or machine.",
    )
    s3_endpoint_url: HttpAddress | None = Field(
        default=None,
        validation_alias="rsm.config.storage.s3.endpoint.url",
        description="URL of an S3-compatible store other than Amazon's.",
    )
    s3_region: str | None = Field(
        default=None,
        min_length=1,
        validation_alias="rsm.config.storage.s3.region",
        description="Region of the bucket. If it is not set, the SDK takes the region from the "
        "environment or from its shared configuration file.",
    )
    s3_path_style: bool = Field(
        default=False,
        validation_alias="rsm.config.storage.s3.path.style.access.enabled",
        description="Whether requests contain the bucket's name in the path instead of the host "
        "name. Many stores other than Amazon's need `true`.",
    )
    s3_storage_class: str | None = Field(
        default=None,
        min_length=1,
        validation_alias="rsm.config.storage.s3.storage.class",
        description="**Unreadable segments:** `rlm` cannot read objects that must be restored "
        "first, such as those of the class `GLACIER`. Storage class of new objects. If it is not "
        "set, the store uses its default, which is `STANDARD` for Amazon S3.",
    )
    s3_encryption: ServerSideEncryption | None = Field(
        default=None,
        validation_alias="rsm.config.storage.s3.server.side.encryption",
        description="How the store encrypts new objects: `AES256` (SSE-S3) or `aws:kms` "
        "(SSE-KMS). If it is not set, the bucket's default applies.",
    )
    s3_kms_key_id: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias="rsm.config.storage.s3.kms.key.id",
        description="AWS KMS key that encrypts new objects with SSE-KMS, by ID or ARN. If it is "
        "not set, the store uses the account's default key.",
    )
    s3_part_bytes: int = Field(
        default=16 << 20,
        ge=MIN_PART_BYTES,
        le=MAX_PART_BYTES,
        validation_alias="rsm.config.storage.s3.multipart.upload.part.size",
        description="Size of a part of an upload. An object up to this size needs one request. "
        "Higher: fewer requests and more memory for each part.",
    )
    s3_upload_memory_bytes: SizeBytes = Field(
        default=192 << 20,
        validation_alias="rsm.config.storage.s3.upload.memory.bytes",
        description="Maximum memory for the parts that all copies of a process send at once; one "
        "part always fits. Higher: faster copies to a distant store. The default is the size of "
        "three `block_v1` blocks.",
    )
    s3_attempt_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.s3.api.call.attempt.timeout",
        description="How long each phase of an attempt of a request may take: to connect, to send, "
        "and to receive the response. Higher: a request survives a slow store longer, and copies "
        "stop later if the store is down.",
    )
    s3_max_attempts: Count = Field(
        default=3,
        validation_alias="rsm.config.storage.s3.max.attempts",
        description="Maximum number of attempts of one request, including the first. The pauses "
        "between attempts grow and are jittered. Higher: a request survives longer faults and "
        "fails later.",
    )

    def s3_settings(self, stream_buffer_bytes: int | None = None) -> S3Settings:
        """Return the settings of the store's binding."""
        assert self.s3_bucket is not None
        return S3Settings(
            bucket=self.s3_bucket,
            endpoint_url=self.s3_endpoint_url,
            region=self.s3_region,
            path_style=self.s3_path_style,
            storage_class=self.s3_storage_class,
            encryption=self.s3_encryption,
            kms_key_id=self.s3_kms_key_id,
            part_bytes=self.s3_part_bytes,
            upload_memory_bytes=self.s3_upload_memory_bytes,
            stream_memory_bytes=stream_share(self.s3_upload_memory_bytes, stream_buffer_bytes),
            attempt_timeout_ms=self.s3_attempt_timeout_ms,
            max_attempts=self.s3_max_attempts,
        )

    @field_validator("s3_bucket")
    @classmethod
    def _require_bucket(cls, value: str | None, info: ValidationInfo) -> str | None:
        return required(value, Backend.S3, info)

    @field_validator("s3_kms_key_id")
    @classmethod
    def _check_kms_key(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("s3_encryption") is not ServerSideEncryption.SSE_KMS:
            raise ValueError("no key without rsm.config.storage.s3.server.side.encryption=aws:kms")
        return value


class AzureKeys(StoreChoice):
    """The settings of a container of Azure Blob Storage."""

    azure_container: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias=AZURE_CONTAINER_KEY,
        description="Name of the container; required for `azure`.",
    )
    azure_connection_string: SecretStr | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias=AZURE_CONNECTION_KEY,
        description="Connection string of the account, with its key or a shared access signature; "
        "required for `azure`. `rlm` never shows it.",
    )
    azure_block_bytes: int = Field(
        default=16 << 20,
        ge=1 << 20,
        le=AZURE_MAX_PART_BYTES,
        validation_alias="rsm.config.storage.azure.upload.block.size",
        description="Size of a block of an upload. An object up to this size needs one request. "
        "Higher: fewer requests and more memory for each block.",
    )
    azure_upload_memory_bytes: SizeBytes = Field(
        default=192 << 20,
        validation_alias="rsm.config.storage.azure.upload.memory.bytes",
        description="Maximum memory for the blocks that all copies of a process send at once; one "
        "block always fits. Higher: faster copies to a distant store.",
    )
    azure_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.azure.timeout.ms",
        description="How long each phase of an attempt of a request may take: to connect, to wait "
        "for data, and to receive the response to a read. Higher: a request survives a slow store "
        "longer, and copies stop later if the store is down.",
    )

    def azure_settings(self, stream_buffer_bytes: int | None = None) -> AzureSettings:
        """Return the settings of the store's binding."""
        assert self.azure_container is not None
        assert self.azure_connection_string is not None
        return AzureSettings(
            connection_string=self.azure_connection_string.get_secret_value(),
            container=self.azure_container,
            part_bytes=self.azure_block_bytes,
            upload_memory_bytes=self.azure_upload_memory_bytes,
            stream_memory_bytes=stream_share(self.azure_upload_memory_bytes, stream_buffer_bytes),
            attempt_timeout_ms=self.azure_timeout_ms,
        )

    @field_validator("azure_container", "azure_connection_string")
    @classmethod
    def _require_azure(cls, value: T | None, info: ValidationInfo) -> T | None:
        return required(value, Backend.AZURE, info)


class GcsKeys(StoreChoice):
    """The settings of a bucket of Google Cloud Storage."""

    gcs_bucket: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias=GCS_BUCKET_KEY,
        description="Name of the bucket; required for `gcs`.",
    )
    gcs_endpoint_url: HttpAddress | None = Field(
        default=None,
        validation_alias="rsm.config.storage.gcs.endpoint.url",
        description="URL of a GCS-compatible store other than Google's.",
    )
    gcs_credentials_file: File | None = Field(
        default=None,
        validation_alias="rsm.config.storage.gcs.credentials.path",
        description="JSON file with the key of a service account.",
    )
    gcs_default_credentials: bool = Field(
        default=True,
        validation_alias="rsm.config.storage.gcs.credentials.default",
        description="Whether `rlm` uses the application default credentials if no key file is set: "
        "those of the environment, of the machine's service account or of the pod's. With `false`, "
        "`rlm` then sends no credentials.",
    )
    gcs_part_bytes: int = Field(
        default=16 << 20,
        ge=PART_UNIT_BYTES,
        multiple_of=PART_UNIT_BYTES,
        validation_alias="rsm.config.storage.gcs.resumable.upload.chunk.size",
        description="Size of a part of an upload, a multiple of 262144 bytes. Larger "
        "objects are uploaded in parts. Higher: fewer requests and more memory for each part.",
    )
    gcs_attempt_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.gcs.timeout.ms",
        description="How long each phase of an attempt of a request may take: to connect, to send, "
        "and to receive the response. Higher: a request survives a slow store longer, and copies "
        "stop later if the store is down.",
    )
    gcs_retry_timeout_ms: IntervalMs = Field(
        default=60_000,
        validation_alias="rsm.config.storage.gcs.retry.timeout.ms",
        description="How long `rlm` retries a failed request, with growing, jittered pauses. "
        "Higher: a request survives longer faults and fails later.",
    )

    def gcs_settings(self) -> GcsSettings:
        """Return the settings of the store's binding."""
        assert self.gcs_bucket is not None
        return GcsSettings(
            bucket=self.gcs_bucket,
            endpoint_url=self.gcs_endpoint_url,
            credentials_file=self.gcs_credentials_file,
            is_anonymous=self.gcs_credentials_file is None and not self.gcs_default_credentials,
            part_bytes=self.gcs_part_bytes,
            attempt_timeout_ms=self.gcs_attempt_timeout_ms,
            retry_timeout_ms=self.gcs_retry_timeout_ms,
        )

    @field_validator("gcs_bucket")
    @classmethod
    def _require_gcs(cls, value: str | None, info: ValidationInfo) -> str | None:
        return required(value, Backend.GCS, info)
