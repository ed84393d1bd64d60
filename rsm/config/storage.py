"""Defines and parses the settings of the store and of the segments in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from rsm.config.choices import (
    RSM_PREFIX,
    Backend,
    GivenSettings,
    Layout,
    LayoutChoices,
    StorageManager,
    StorageManagerChoice,
)
from rsm.config.cloud_stores import AzureKeys, GcsKeys, S3Keys, stream_share
from rsm.config.fetch_cache import FetchCacheKeys
from rsm.config.metadata_manager import METADATA_MANAGER_KEY, METADATA_PREFIX
from rsm.config.section import keys_of, parse_section
from rsm.config.store_choice import BACKEND_KEY, FILESYSTEM_ROOT_KEY, required
from rsm.config.values import (
    AbsolutePath,
    CopyVerification,
    Count,
    DurationMs,
    File,
    HttpAddresses,
    IntervalMs,
    KeyPrefix,
    split_list,
)
from rsm.layout.blocks.block_format import DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MIN_LOG_BLOCK_BYTES
from rsm.plugins.plugin import ClassName, Plugin
from rsm.storage.filesystem.file_access import FileAccess
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import MIN_PART_BYTES
from rsm.storage.settings import FaultPlan, FilesystemSettings, RehearsalSettings
from rsm.store_settings import DEFAULT_CHUNK_BYTES, SegmentSettings, Store

_Share = Annotated[float, Field(ge=0, le=1)]

HDFS_NAMENODES_KEY = "rsm.config.storage.hdfs.namenode.urls"
HDFS_ROOT_KEY = "rsm.config.storage.hdfs.root"

STORAGE_MANAGER_KEY = "remote.log.storage.manager.class.name"
LAYOUT_KEY = "rsm.config.layout"
PLUGIN_KEYS = f"{RSM_PREFIX}<key of a plug-in>"
_STORAGE = "storage."
_LAYOUT = "layout."

# Each configuration of a store contains at least one of these keys.
STORE_KEYS = (BACKEND_KEY, FILESYSTEM_ROOT_KEY)


class StorageConfig(GcsKeys, AzureKeys, S3Keys):
    """The store."""

    hdfs_namenode_urls: HttpAddresses = Field(
        default=(),
        validate_default=True,
        validation_alias=HDFS_NAMENODES_KEY,
        description="WebHDFS addresses of the NameNodes, or of HttpFS, such as http://host:9870, "
        "comma-separated; required for `hdfs`. `rlm` finds the active NameNode.",
    )
    hdfs_root: AbsolutePath | None = Field(
        default=None,
        validate_default=True,
        validation_alias=HDFS_ROOT_KEY,
        description="Absolute HDFS path of the objects; required for `hdfs`. The directory must "
        "exist.",
    )
    hdfs_user: str = Field(
        default="rlm",
        min_length=1,
        validation_alias="rsm.config.storage.hdfs.user",
        description="User name in the requests. Authentication is simple; Kerberos is unsupported.",
    )
    hdfs_timeout_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="rsm.config.storage.hdfs.timeout.ms",
        description="How long each phase of a request may take: to connect, to send, and to "
        "receive the response. Higher: a request survives a slow store longer, and copies stop "
        "later if the store is down.",
    )
    key_prefix: KeyPrefix = Field(
        default="",
        validation_alias="rsm.config.key.prefix",
        description="First part of every object's name; a slash follows it. If it is empty, names "
        "do not start with a slash.",
    )
    storage_manager: StorageManagerChoice = Field(
        default=StorageManager.OBJECTS,
        validation_alias=STORAGE_MANAGER_KEY,
        description="The remote storage manager, which copies, reads and deletes segments. "
        "`objects` writes them to the store in a layout. The alternative is the class of a "
        "[plug-in](plugins.md) as `package.module:Class`. In both cases, `rlm` stores its own "
        "objects, such as the originals of topics, in the store.",
    )
    layouts: LayoutChoices = Field(
        default=(Layout.RAW,),
        validation_alias=LAYOUT_KEY,
        description="Layout of new segments. `raw`: the broker's file unchanged. `chunked`: the "
        "file in objects of bounded size. `block_v1`: Apache Pulsar's format of offloaded "
        "ledgers. `block_v2`: Pulsar's format of streams. `package.module:Class`: the class of a "
        "[plug-in](plugins.md). In a comma-separated list, the first layout applies to topics "
        "for which none is set (`rlm topic set --layout`). Topics can use, and `rlm` can read, "
        "the built-in layouts and those of the list. Streamed segments (`offload.mode=stream`) "
        "are in `chunked` if that is the topic's layout, and in `block_v2` otherwise.",
    )
    given: GivenSettings = Field(
        default=GivenSettings(),
        validation_alias=PLUGIN_KEYS,
        description="Settings of plug-ins, which get them without the prefix. A store gets those "
        "below `rsm.config.storage.`, a layout those below `rsm.config.layout.`, and a remote "
        "storage manager all `rsm.config.*`. Only a remote storage manager also gets the keys "
        "that this page lists. A setting that no plug-in reads is an error.",
    )
    plugin_timeout_ms: IntervalMs = Field(
        default=60_000,
        validation_alias="rsm.config.plugin.timeout.ms",
        description="How long a plug-in may take to start, and how long a call of its store or "
        "remote storage manager may take without reading from its source. After this time, the "
        "call fails and is counted. Higher: slow deletions of many objects succeed. Lower: a "
        "plug-in that hangs is visible earlier.",
    )
    block_bytes: int = Field(
        default=DEFAULT_BLOCK_BYTES,
        ge=MIN_LOG_BLOCK_BYTES,
        le=MAX_BLOCK_BYTES,
        validation_alias="rsm.config.block.size",
        description="Size of a block of `block_v1`. A block of `block_v2` has this size, but at "
        "most 5 MiB. A block of `block_v1` is one part of the upload. For `s3`, the minimum is "
        "5242880. A larger record batch gets a separate block. Higher: fewer requests and more "
        "memory for each copy. Lower: a longer index. The minimum still allows the index of a "
        "2 GiB segment.",
    )
    chunk_bytes: int = Field(
        default=DEFAULT_CHUNK_BYTES,
        ge=1 << 20,
        le=1 << 31,
        validation_alias="rsm.config.chunked.object.max.bytes",
        description="Maximum size of the objects of a log in the layout `chunked`. All objects of "
        "a log except the last have this size. Stored segments keep their sizes. Higher: fewer "
        "requests and objects. Lower: smaller objects, for stores or tools with a limit.",
    )
    index_cache_bytes: Count = Field(
        default=67_108_864,
        validation_alias="remote.log.index.file.cache.total.size.bytes",
        description="Maximum memory of a manager or gateway for indexes and other small objects. A "
        "gateway's workers share it equally. Higher: fewer requests to the store, more memory.",
    )
    copy_verify: CopyVerification = Field(
        default=CopyVerification.NONE,
        validation_alias="remote.copy.verify",
        description="How the manager verifies copies. It always compares the length of an object, "
        "and the checksum if the store keeps one. With `read`, it also reads every object back "
        "before the copy counts as finished, which doubles the transferred bytes.",
    )
    request_warning_ms: IntervalMs = Field(
        default=10_000,
        validation_alias="rsm.config.storage.request.warning.ms",
        description="Duration above which a process logs a request to the store as slow, at INFO. "
        "Each transferred KiB adds 1 ms. Listings and streams are not logged. Lower: more lines.",
    )
    read_only: bool = Field(
        default=False,
        validation_alias="rsm.config.storage.read.only",
        description="Whether the process rejects every change of the store. Set it to `true` for "
        "gateways on separate hosts.",
    )
    throttle_bytes_per_second: Count | None = Field(
        default=None,
        validation_alias="rsm.config.storage.throttle.bytes.per.second",
        description="Maximum bytes per second that each process writes to and reads from the store."
        " Further requests wait. Higher: faster copies and reads, more load on the store.",
    )
    throttle_requests_per_second: Count | None = Field(
        default=None,
        validation_alias="rsm.config.storage.throttle.requests.per.second",
        description="Maximum number of requests per second that each process sends to the store. "
        "Further requests wait. Higher: faster copies and reads, more load on the store.",
    )
    slow_delay_ms: DurationMs = Field(
        default=0,
        validation_alias="rsm.config.storage.slow.delay.ms",
        description="For rehearsals only: the pause before each request to the store.",
    )
    faulty_fail_share: _Share = Field(
        default=0.0,
        validation_alias="rsm.config.storage.faulty.fail.share",
        description="For rehearsals only: the share of requests that fail. A request fails before "
        "its effect, after a part of it, or after all of it.",
    )
    faulty_flip_share: _Share = Field(
        default=0.0,
        validation_alias="rsm.config.storage.faulty.flip.share",
        description="For rehearsals only: the share of reads that return one changed bit.",
    )
    faulty_seed: DurationMs = Field(
        default=0,
        validation_alias="rsm.config.storage.faulty.seed",
        description="For rehearsals only: the seed of the random choice of faults. With the same "
        "seed, the same sequence of requests has the same faults.",
    )
    faulty_while_file: File | None = Field(
        default=None,
        validation_alias="rsm.config.storage.faulty.while.file",
        description="For rehearsals only: requests fail and reads return changed bits only while "
        "this file exists.",
    )

    @property
    def layout(self) -> Layout | ClassName:
        """Return the layout of new segments for topics that do not set one."""
        return self.layouts[0]

    @property
    def part_bytes(self) -> int:
        """Return the size of a part of an upload; 0 if the store has no fixed size."""
        match self.backend:
            case Backend.S3:
                return self.s3_part_bytes
            case Backend.AZURE:
                return self.azure_block_bytes
            case Backend.GCS:
                return self.gcs_part_bytes
            case _:
                return 0

    def stream_memory_bytes(self, buffer_bytes: int) -> int:
        """Return the memory for all streams of a process, given the size of its stream buffer."""
        match self.backend:
            case Backend.S3:
                return stream_share(self.s3_upload_memory_bytes, buffer_bytes)
            case Backend.AZURE:
                return stream_share(self.azure_upload_memory_bytes, buffer_bytes)
            case _:
                return buffer_bytes

    def store(self, stream_buffer_bytes: int | None = None) -> Store:
        """Return the settings of the store's binding; the plug-in if the store is one.

        If all uploads share memory, `stream_buffer_bytes` also limits the memory for streams.
        """
        match self.backend:
            case ClassName():
                return self._plugin(self.backend, BACKEND_KEY, _STORAGE)
            case Backend.AZURE:
                return self.azure_settings(stream_buffer_bytes)
            case Backend.GCS:
                return self.gcs_settings()
            case Backend.HDFS:
                return self._hdfs()
            case Backend.S3:
                return self.s3_settings(stream_buffer_bytes)
            case Backend.FILESYSTEM:
                assert self.filesystem_root is not None  # A validator requires it.
                return FilesystemSettings(root=self.filesystem_root, access=self.file_access())

    def segments(self) -> SegmentSettings:
        """Return the settings that decide how segments are stored."""
        return SegmentSettings(
            key_prefix=self.key_prefix,
            layouts=tuple(
                each.value if isinstance(each, Layout) else self._plugin(each, LAYOUT_KEY, _LAYOUT)
                for each in self.layouts
            ),
            block_bytes=self.block_bytes,
            chunk_bytes=self.chunk_bytes,
            index_cache_bytes=self.index_cache_bytes,
            should_read_back=self.copy_verify is CopyVerification.READ,
            manager=self._plugin_manager(),
        )

    def file_access(self) -> FileAccess:
        """Return the permissions of files in a `filesystem` store."""
        return FileAccess(mode=self.filesystem_file_mode)

    def rehearsal(self) -> RehearsalSettings:
        """Return the limits, the read-only mode, and the delays and faults of rehearsals."""
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
            is_read_only=self.read_only,
        )

    def _plugin(self, name: ClassName, key: str, below: str) -> Plugin:
        """Return a plug-in with the settings below `below`, except the keys of `rlm`."""
        settings = {
            each: value
            for each, value in self.given.below(below).items()
            if f"{RSM_PREFIX}{below}{each}" not in RSM_KEYS
        }
        shares = below == _LAYOUT and sum(isinstance(each, ClassName) for each in self.layouts) > 1
        return Plugin(
            class_name=name,
            key=key,
            prefix=RSM_PREFIX + below,
            settings=settings,
            unread=frozenset(settings) if shares else frozenset(),
            timeout_ms=self.plugin_timeout_ms,
        )

    def _plugin_manager(self) -> Plugin | None:
        """Return the remote storage manager's plug-in with all settings; None for the built-in.

        The plug-in need not read the settings that `rlm` or another plug-in reads.
        """
        if not isinstance(self.storage_manager, ClassName):
            return None
        values = self.given.values
        read_elsewhere = tuple(
            below
            for below, is_plugin in (
                (_STORAGE, isinstance(self.backend, ClassName)),
                (_LAYOUT, any(isinstance(each, ClassName) for each in self.layouts)),
            )
            if is_plugin
        )
        return Plugin(
            class_name=self.storage_manager,
            key=STORAGE_MANAGER_KEY,
            prefix=RSM_PREFIX,
            settings=values,
            unread=frozenset(
                key
                for key in values
                if RSM_PREFIX + key in RSM_KEYS or key.startswith(read_elsewhere)
            ),
            timeout_ms=self.plugin_timeout_ms,
        )

    def _hdfs(self) -> HdfsSettings:
        assert self.hdfs_root is not None
        return HdfsSettings(
            namenode_urls=tuple(url.rstrip("/") for url in self.hdfs_namenode_urls),
            root=self.hdfs_root,
            user=self.hdfs_user,
            timeout_ms=self.hdfs_timeout_ms,
        )

    @field_validator("hdfs_namenode_urls")
    @classmethod
    def _require_namenodes(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return required(value or None, Backend.HDFS, info) or ()

    @field_validator("hdfs_root")
    @classmethod
    def _require_hdfs_root(cls, value: str | None, info: ValidationInfo) -> str | None:
        return required(value, Backend.HDFS, info)

    @field_validator("block_bytes")
    @classmethod
    def _check_block(cls, value: int, info: ValidationInfo) -> int:
        if value < MIN_PART_BYTES and info.data.get("backend") is Backend.S3:
            raise ValueError(f"at least {MIN_PART_BYTES} for s3, the minimum size of a part")
        return value


RSM_KEYS = frozenset({*keys_of(StorageConfig), *keys_of(FetchCacheKeys)}) - {PLUGIN_KEYS}
"""All keys of the store, of segments and of a gateway's cache."""


def parse_storage(values: Mapping[str, str]) -> StorageConfig:
    """Parse the keys of the store and of segments among `values`; ignore all others.

    Raises InvalidConfigError, which names the invalid `key`.
    """
    return parse_section(StorageConfig, storage_values(values))


def storage_values(values: Mapping[str, str]) -> Mapping[str, object]:
    """Return the values of the store's and segments' keys, in the form that StorageConfig takes."""
    given = {key: values[key] for key in keys_of(StorageConfig) if key in values}
    return {**given, PLUGIN_KEYS: GivenSettings.of(values, RSM_PREFIX)}


def plugin_prefixes(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the prefixes of the keys that the plug-ins in `values` can read."""
    prefixes = {
        BACKEND_KEY: RSM_PREFIX + _STORAGE,
        LAYOUT_KEY: RSM_PREFIX + _LAYOUT,
        STORAGE_MANAGER_KEY: RSM_PREFIX,
        METADATA_MANAGER_KEY: METADATA_PREFIX,
    }
    return tuple(
        prefix
        for key, prefix in prefixes.items()
        if any(ClassName.parse(part) for part in split_list(values.get(key, "")))
    )
