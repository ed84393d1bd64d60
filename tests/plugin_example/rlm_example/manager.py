"""An example of a remote storage manager.

remote.log.storage.manager.class.name=rlm_example.manager:ArchiveStorageManager
rsm.config.archive.root=/srv/archive
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.errors import InvalidConfigError
from rsm.storage.filesystem.storage import FilesystemChunkStorage


class ArchiveStorageManager(SegmentStorageManager):
    """Keeps segments in a directory, which need not be the store of `rlm`'s other objects.

    Settings: `archive.root`, which must exist; `key.prefix`, a key that `rlm` reads, too.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        root = settings.get("archive.root")
        if not root:
            raise InvalidConfigError("a setting is missing", setting="archive.root")
        super().__init__(
            storage=FilesystemChunkStorage(Path(root)),
            keys=ObjectKeys(prefix=settings.get("key.prefix", "")),
            layouts=[RawLayout()],
        )
