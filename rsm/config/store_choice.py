"""Defines the keys that select the store.

Each store's section extends StoreChoice to check the selected kind.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from rsm.config.choices import Backend, BackendChoice
from rsm.config.section import Section
from rsm.config.values import Directory, FileMode

T = TypeVar("T")

BACKEND_KEY = "rsm.config.storage.backend"
FILESYSTEM_ROOT_KEY = "rsm.config.storage.filesystem.root"
FILESYSTEM_MODE_KEY = "rsm.config.storage.filesystem.file.mode"


class StoreChoice(Section):
    """The kind of store, and the settings of the default kind, a directory."""

    backend: BackendChoice = Field(
        default=Backend.FILESYSTEM,
        validation_alias=BACKEND_KEY,
        description="Kind of store: `filesystem`, `s3`, `hdfs`, `azure`, `gcs`, or the class "
        "of a [plug-in](plugins.md) as `package.module:Class`.",
    )
    filesystem_root: Directory | None = Field(
        default=None,
        validate_default=True,
        validation_alias=FILESYSTEM_ROOT_KEY,
        description="Directory of the objects; required for `filesystem`. It must exist. `rlm` "
        "does not create it, because that would hide a missing mount.",
    )

    filesystem_file_mode: FileMode | None = Field(
        default=None,
        validation_alias=FILESYSTEM_MODE_KEY,
        description="**Disclosure:** with 0644, every user of the host can read the stored "
        "records, regardless of Kafka's ACLs. Permissions of new files below "
        "`rsm.config.storage.filesystem.root`, octal, from 0600 to 0666 without execute bits. "
        "Users who can read a file can also search its directory. If this key is not set, files "
        "get 0640 and directories 0750, less the process's umask. Existing files keep their "
        "permissions.",
    )

    @property
    def backend_name(self) -> str:
        """Return the backend's name or class, as in the configuration."""
        return self.backend.value if isinstance(self.backend, Backend) else str(self.backend)

    @field_validator("filesystem_root")
    @classmethod
    def _require_root(cls, value: Directory | None, info: ValidationInfo) -> Directory | None:
        return required(value, Backend.FILESYSTEM, info)


def required(value: T | None, backend: Backend, info: ValidationInfo) -> T | None:
    """Return `value`; raise PydanticCustomError if it is None although `backend` is chosen."""
    if value is None and info.data.get("backend") is backend:
        raise PydanticCustomError("missing", "a value for this backend")
    return value
