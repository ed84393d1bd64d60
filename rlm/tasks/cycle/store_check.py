"""Whether the store can be reached, and, once, whether it deletes objects by rules of its own."""

from __future__ import annotations

import logging

from rsm.segment.errors import TieredStorageError
from rsm.storage.chunk_storage import ChunkStorage

_log = logging.getLogger(__name__)


class StoreCheck:
    """One thread's."""

    def __init__(self, storage: ChunkStorage, *, key_prefix: str) -> None:
        """`key_prefix`: what the keys of all our objects begin with."""
        self._storage = storage
        self._key_prefix = key_prefix
        self._has_read_rules = False
        self._problem = ""

    def step(self) -> None:
        """Raises as `ChunkStorage.check_access`; what the rules say is only logged."""
        self._storage.check_access()
        if not self._has_read_rules:
            self._read_rules()

    def _read_rules(self) -> None:
        """What lasts, like a right that is missing, is logged once, and asked again each time."""
        try:
            rules = self._storage.expiry_rules()
        except TieredStorageError as error:
            if str(error) != self._problem:
                _log.info("the bucket's lifecycle rules were not read", extra={"error": error})
            self._problem = str(error)
            return
        self._has_read_rules = True
        for rule in rules:
            if rule.concerns(self._key_prefix):
                _log.warning(
                    "the bucket deletes or archives stored segments by itself, remove its rule",
                    extra={"rule": rule},
                )
