"""A remote storage manager of its own.

remote.log.storage.manager.class.name=rlm_example.manager:ArchiveStorageManager
rsm.config.archive.path=/srv/archive.sqlite
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm_example.storage import SqliteChunkStorage
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager


class ArchiveStorageManager(SegmentStorageManager):
    """Keeps segments in a SQLite file, whatever the store of `rlm`'s other objects is.

    Settings: `archive.path` of the file, required; `key.prefix`, which `rlm` knows too.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(
            storage=SqliteChunkStorage({"path": settings["archive.path"]}),
            keys=ObjectKeys(prefix=settings.get("key.prefix", "")),
            layouts=[RawLayout()],
        )
