"""The settings of the store: which one, how it is reached, and what it may be made to do."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from rlm.config.section import Section
from rlm.config.values import (
    Backend,
    CopyVerification,
    Count,
    Directory,
    DurationMs,
    File,
    KeyPrefix,
)
from rsm.storage.bindings import FilesystemSettings, StoreSettings
from rsm.storage.faulty import FaultPlan
from rsm.storage.rehearsal import RehearsalSettings

_Share = Annotated[float, Field(ge=0, le=1)]

BACKEND_KEY = "rsm.config.storage.backend"
FILESYSTEM_ROOT_KEY = "rsm.config.storage.filesystem.root"


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
    key_prefix: KeyPrefix = Field(
        default="",
        validation_alias="rsm.config.key.prefix",
        description="First part of every object's name; empty adds no slash.",
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
        assert self.filesystem_root is not None  # checked below
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

    @field_validator("filesystem_root")
    @classmethod
    def _require_root(cls, value: Directory | None, info: ValidationInfo) -> Directory | None:
        return _required(value, Backend.FILESYSTEM, info)


def _required(value: Directory | None, backend: Backend, info: ValidationInfo) -> Directory | None:
    """`value`, which a configuration of `backend` must have."""
    if value is None and info.data.get("backend") is backend:
        raise PydanticCustomError("missing", "a value for this backend")
    return value
