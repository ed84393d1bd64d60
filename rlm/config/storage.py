"""The settings of the store: which one, how it is reached, and what it may be made to do."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from rlm.config.section import Section
from rlm.config.values import (
    Backend,
    CopyVerification,
    Count,
    Directory,
    DurationMs,
    File,
    HttpAddress,
    HttpAddresses,
    IntervalMs,
    KeyPrefix,
    Layout,
    SizeBytes,
)
from rsm.layout.block_format import DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES
from rsm.storage.azure.settings import MAX_PART_BYTES as AZURE_MAX_PART_BYTES
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.bindings import FilesystemSettings, StoreSettings
from rsm.storage.faulty import FaultPlan
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.rehearsal import RehearsalSettings
from rsm.storage.s3.settings import (
    MAX_PART_BYTES,
    MIN_PART_BYTES,
    S3Settings,
    ServerSideEncryption,
)

T = TypeVar("T")

_AbsolutePath = Annotated[str, Field(pattern=r"^/")]
_Share = Annotated[float, Field(ge=0, le=1)]

BACKEND_KEY = "rsm.config.storage.backend"
FILESYSTEM_ROOT_KEY = "rsm.config.storage.filesystem.root"
AZURE_CONNECTION_KEY = "rsm.config.storage.azure.connection.string"
AZURE_CONTAINER_KEY = "rsm.config.storage.azure.container.name"
HDFS_NAMENODES_KEY = "rsm.config.storage.hdfs.namenode.urls"
HDFS_ROOT_KEY = "rsm.config.storage.hdfs.root"
S3_BUCKET_KEY = "rsm.config.storage.s3.bucket.name"

# One of these stands in every configuration that has a store.
STORE_KEYS = (BACKEND_KEY, FILESYSTEM_ROOT_KEY)


class StorageConfig(Section):
    """The store."""

    backend: Backend = Field(
        default=Backend.FILESYSTEM,
        validation_alias=BACKEND_KEY,
        description="Kind of store.",
    )
    filesystem_root: Directory | None = Field(
        default=None,
        validate_default=True,
        validation_alias=FILESYSTEM_ROOT_KEY,
        description="Directory that objects are stored under; required for `filesystem`. It must "
        "exist: a mount that vanished is not made anew.",
    )
    s3_bucket: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias=S3_BUCKET_KEY,
        description="Name of the bucket; required for `s3`. Credentials are those of the SDK's "
        "default chain: environment, shared files, role of the container or of the machine.",
    )
    s3_endpoint_url: HttpAddress | None = Field(
        default=None,
        validation_alias="rsm.config.storage.s3.endpoint.url",
        description="Where the store answers, if it is not Amazon's.",
    )
    s3_region: str | None = Field(
        default=None,
        min_length=1,
        validation_alias="rsm.config.storage.s3.region",
        description="The bucket's region; by default what the SDK finds in its environment.",
    )
    s3_path_style: bool = Field(
        default=False,
        validation_alias="rsm.config.storage.s3.path.style.access.enabled",
        description="Name the bucket in the path, not in the host name.",
    )
    s3_storage_class: str | None = Field(
        default=None,
        min_length=1,
        validation_alias="rsm.config.storage.s3.storage.class",
        description="Storage class of new objects; by default the bucket's. One that has to be "
        "restored before it is read makes segments unreadable.",
    )
    s3_encryption: ServerSideEncryption | None = Field(
        default=None,
        validation_alias="rsm.config.storage.s3.server.side.encryption",
        description="How the store encrypts new objects; by default as the bucket says. "
        "`AES256` (SSE-S3) or `aws:kms` (SSE-KMS).",
    )
    s3_kms_key_id: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        validation_alias="rsm.config.storage.s3.kms.key.id",
        description="Key of SSE-KMS, if not the account's default one.",
    )
    s3_part_bytes: int = Field(
        default=16 << 20,
        ge=MIN_PART_BYTES,
        le=MAX_PART_BYTES,
        validation_alias="rsm.config.storage.s3.multipart.upload.part.size",
        description="Larger objects go up in parts of so many bytes; others are one request.",
    )
    s3_upload_memory_bytes: SizeBytes = Field(
        default=128 << 20,
        validation_alias="rsm.config.storage.s3.upload.memory.bytes",
        description="Memory for parts on their way, of all copies of a process together; at least "
        "one part's. It decides how many parts are sent at once.",
    )
    s3_attempt_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.s3.api.call.attempt.timeout",
        description="How long one attempt may wait to connect, to send, and for an answer.",
    )
    s3_max_attempts: Count = Field(
        default=3,
        validation_alias="rsm.config.storage.s3.max.attempts",
        description="Attempts of one request, with growing, jittered pauses between them.",
    )
    hdfs_namenode_urls: HttpAddresses = Field(
        default=(),
        validate_default=True,
        validation_alias=HDFS_NAMENODES_KEY,
        description="Where name nodes (or HttpFS) speak WebHDFS, as http://host:9870, "
        "comma-separated; required for `hdfs`. The active one is found.",
    )
    hdfs_root: _AbsolutePath | None = Field(
        default=None,
        validate_default=True,
        validation_alias=HDFS_ROOT_KEY,
        description="Directory of HDFS that objects are stored under, absolute; required for "
        "`hdfs`. It must exist.",
    )
    hdfs_user: str = Field(
        default="rlm",
        min_length=1,
        validation_alias="rsm.config.storage.hdfs.user",
        description="Name of the user; authentication is simple.",
    )
    hdfs_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.hdfs.timeout.ms",
        description="How long a request may wait to connect, to send, and for an answer.",
    )
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
        description="Connection string of the account, with its key or a shared access "
        "signature; required for `azure`. Never shown.",
    )
    azure_block_bytes: int = Field(
        default=16 << 20,
        ge=1 << 20,
        le=AZURE_MAX_PART_BYTES,
        validation_alias="rsm.config.storage.azure.upload.block.size",
        description="Larger objects go up in blocks of so many bytes; others are one request.",
    )
    azure_upload_memory_bytes: SizeBytes = Field(
        default=128 << 20,
        validation_alias="rsm.config.storage.azure.upload.memory.bytes",
        description="Memory for blocks on their way, of all copies of a process together.",
    )
    azure_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.azure.timeout.ms",
        description="How long one attempt may wait to connect, and for each answer.",
    )
    key_prefix: KeyPrefix = Field(
        default="",
        validation_alias="rsm.config.key.prefix",
        description="First part of every object's name; empty adds no slash.",
    )
    layout: Layout = Field(
        default=Layout.RAW,
        validation_alias="rsm.config.layout",
        description="What new segments look like in the store: `raw`, the broker's file as it is, "
        "or `block_v1`, as Apache Pulsar offloads ledgers. Stored ones are read whatever it says.",
    )
    block_bytes: int = Field(
        default=DEFAULT_BLOCK_BYTES,
        ge=MIN_BLOCK_BYTES,
        le=MAX_BLOCK_BYTES,
        validation_alias="rsm.config.block.size",
        description="Length of a block of `block_v1`, each of which is a part of the upload. On "
        "`s3` not below 5242880. A record batch that is larger has a block of its own.",
    )
    index_cache_bytes: Count = Field(
        default=67_108_864,
        validation_alias="remote.log.index.file.cache.total.size.bytes",
        description="Memory of a process for indexes and whatever else is stored beside segments.",
    )
    copy_verify: CopyVerification = Field(
        default=CopyVerification.NONE,
        validation_alias="remote.copy.verify",
        description="`read` reads every object back before its copy counts as finished. Length, "
        "and the store's checksum where it keeps one, are compared always.",
    )
    read_only: bool = Field(
        default=False,
        validation_alias="rsm.config.storage.read.only",
        description="Refuse whatever would change the store; for gateways of their own.",
    )
    throttle_bytes_per_second: Count | None = Field(
        default=None,
        validation_alias="rsm.config.storage.throttle.bytes.per.second",
        description="Bytes per second that each process writes to and reads from the store; who "
        "asks for more waits.",
    )
    throttle_requests_per_second: Count | None = Field(
        default=None,
        validation_alias="rsm.config.storage.throttle.requests.per.second",
        description="Requests per second that each process sends to the store.",
    )
    slow_delay_ms: DurationMs = Field(
        default=0,
        validation_alias="rsm.config.storage.slow.delay.ms",
        description="For rehearsals: a pause before each request to the store.",
    )
    faulty_fail_share: _Share = Field(
        default=0.0,
        validation_alias="rsm.config.storage.faulty.fail.share",
        description="For rehearsals: the share of requests, from 0 to 1, that fail: before "
        "anything was done, half-way, or after all was done.",
    )
    faulty_flip_share: _Share = Field(
        default=0.0,
        validation_alias="rsm.config.storage.faulty.flip.share",
        description="For rehearsals: the share of reads that come back with one bit changed.",
    )
    faulty_seed: DurationMs = Field(
        default=0,
        validation_alias="rsm.config.storage.faulty.seed",
        description="Decides which requests fail.",
    )
    faulty_while_file: File | None = Field(
        default=None,
        validation_alias="rsm.config.storage.faulty.while.file",
        description="Fail only while this file exists.",
    )

    def store(self) -> StoreSettings:
        """What the binding is opened with."""
        match self.backend:
            case Backend.AZURE:
                return self._azure()
            case Backend.HDFS:
                return self._hdfs()
            case Backend.S3:
                return self._s3()
            case Backend.FILESYSTEM:
                assert self.filesystem_root is not None  # checked below, as what others need
                return FilesystemSettings(root=self.filesystem_root)

    def rehearsal(self) -> RehearsalSettings:
        """How the store is to be worse than it is."""
        return RehearsalSettings(
            delay_ms=self.slow_delay_ms,
            bytes_per_second=self.throttle_bytes_per_second,
            requests_per_second=self.throttle_requests_per_second,
            faults=FaultPlan(
                fail_share=self.faulty_fail_share,
                flip_share=self.faulty_flip_share,
                seed=self.faulty_seed,
            ),
            faults_while_file=self.faulty_while_file,
            read_only=self.read_only,
        )

    def _azure(self) -> AzureSettings:
        assert self.azure_container is not None
        assert self.azure_connection_string is not None
        return AzureSettings(
            connection_string=self.azure_connection_string.get_secret_value(),
            container=self.azure_container,
            part_bytes=self.azure_block_bytes,
            upload_memory_bytes=self.azure_upload_memory_bytes,
            attempt_timeout_ms=self.azure_timeout_ms,
        )

    def _hdfs(self) -> HdfsSettings:
        assert self.hdfs_root is not None
        return HdfsSettings(
            namenode_urls=tuple(url.rstrip("/") for url in self.hdfs_namenode_urls),
            root=self.hdfs_root,
            user=self.hdfs_user,
            timeout_ms=self.hdfs_timeout_ms,
        )

    def _s3(self) -> S3Settings:
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
            attempt_timeout_ms=self.s3_attempt_timeout_ms,
            max_attempts=self.s3_max_attempts,
        )

    @field_validator("filesystem_root")
    @classmethod
    def _require_root(cls, value: Directory | None, info: ValidationInfo) -> Directory | None:
        return _required(value, Backend.FILESYSTEM, info)

    @field_validator("azure_container", "azure_connection_string")
    @classmethod
    def _require_azure(cls, value: T | None, info: ValidationInfo) -> T | None:
        return _required(value, Backend.AZURE, info)

    @field_validator("hdfs_namenode_urls")
    @classmethod
    def _require_namenodes(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return _required(value or None, Backend.HDFS, info) or ()

    @field_validator("hdfs_root")
    @classmethod
    def _require_hdfs_root(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _required(value, Backend.HDFS, info)

    @field_validator("s3_bucket")
    @classmethod
    def _require_bucket(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _required(value, Backend.S3, info)

    @field_validator("block_bytes")
    @classmethod
    def _check_block(cls, value: int, info: ValidationInfo) -> int:
        if value < MIN_PART_BYTES and info.data.get("backend") is Backend.S3:
            raise ValueError(f"at least {MIN_PART_BYTES} for s3, which takes no smaller part")
        return value

    @field_validator("s3_kms_key_id")
    @classmethod
    def _check_kms_key(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("s3_encryption") is not ServerSideEncryption.SSE_KMS:
            raise ValueError("rsm.config.storage.s3.server.side.encryption=aws:kms beside it")
        return value


def _required(value: T | None, backend: Backend, info: ValidationInfo) -> T | None:
    """`value`, which a configuration of `backend` must have."""
    if value is None and info.data.get("backend") is backend:
        raise PydanticCustomError("missing", "a value for this backend")
    return value
