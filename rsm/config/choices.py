"""Parses values that name a built-in choice or a plug-in's class; selects plug-ins' settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator

from rsm.config.values import split_list
from rsm.plugins.plugin import ClassName

CLASS_FORM = "package.module:Class"
RSM_PREFIX = "rsm.config."


class Backend(Enum):
    """The built-in stores that can contain segments."""

    FILESYSTEM = "filesystem"
    S3 = "s3"
    HDFS = "hdfs"
    AZURE = "azure"
    GCS = "gcs"


class Layout(Enum):
    """The built-in layouts of segments as objects."""

    RAW = "raw"
    BLOCK_V1 = "block_v1"
    BLOCK_V2 = "block_v2"
    CHUNKED = "chunked"


class StorageManager(Enum):
    """The built-in remote storage manager, which uses a layout and a store."""

    OBJECTS = "objects"


class MetadataManager(Enum):
    """The built-in remote log metadata manager, which uses the metadata topic."""

    TOPIC = "topic"


def _parse_backend(value: object) -> object:
    return _choice(value, Backend)


def _parse_layouts(value: object) -> object:
    if not isinstance(value, str):
        return value
    chosen = tuple(_choice(part, Layout) for part in split_list(value))
    if not chosen or len(set(map(str, chosen))) < len(chosen):
        raise ValueError(f"{_forms(Layout)}, or a comma-separated list without duplicates")
    return chosen


def parse_layout(text: str) -> Layout | ClassName:
    """Return the layout that `text` names. Raises ValueError with the expected forms."""
    found = _choice(text, Layout)
    assert isinstance(found, Layout | ClassName)
    return found


def _parse_storage_manager(value: object) -> object:
    return _choice(value, StorageManager)


def _parse_metadata_manager(value: object) -> object:
    return _choice(value, MetadataManager)


def _choice(value: object, names: type[Enum]) -> object:
    if not isinstance(value, str):
        return value
    if value in {member.value for member in names}:
        return names(value)
    found = ClassName.parse(value)
    if found is None:
        raise ValueError(_forms(names))
    return found


def _forms(names: type[Enum]) -> str:
    return " or ".join([*(f"'{member.value}'" for member in names), CLASS_FORM])


BackendChoice = Annotated[Backend | ClassName, BeforeValidator(_parse_backend)]
LayoutChoices = Annotated[tuple[Layout | ClassName, ...], BeforeValidator(_parse_layouts)]
StorageManagerChoice = Annotated[
    StorageManager | ClassName, BeforeValidator(_parse_storage_manager)
]
MetadataManagerChoice = Annotated[
    MetadataManager | ClassName, BeforeValidator(_parse_metadata_manager)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSettings:
    """The user's settings below a prefix, by keys without the prefix. `repr` shows no values."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, values: Mapping[str, str], prefix: str) -> GivenSettings:
        """Select the settings whose keys begin with `prefix`."""
        return cls(
            values={
                key.removeprefix(prefix): value
                for key, value in values.items()
                if key.startswith(prefix)
            }
        )

    def below(self, prefix: str) -> Mapping[str, str]:
        """Return the settings below a further prefix, by keys without that prefix."""
        return GivenSettings.of(self.values, prefix).values
