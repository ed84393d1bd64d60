"""Checks that the store is reachable, and reads its lifecycle rules once."""

from __future__ import annotations

import logging

from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine
from rsm.storage.chunk_storage import ChunkStorage

_log = logging.getLogger(__name__)


class StoreCheck:
    """Checks access to one store, and warns once about its lifecycle rules. Not thread-safe."""

    def __init__(self, storage: ChunkStorage, *, key_prefix: str) -> None:
        """Check rules for keys that begin with `key_prefix`, the common prefix of all objects."""
        self._storage = storage
        self._key_prefix = key_prefix
        self._has_read_rules = False
        self._problem = ""

    def step(self) -> None:
        """Check access, and the rules until they are read once. Raises `check_access`'s errors."""
        self._storage.check_access()
        if not self._has_read_rules:
            self._read_rules()

    def _read_rules(self) -> None:
        """Log the rules that can affect the objects.

        After an error, the next call tries again. Logs an error only if it differs from the
        previous error.
        """
        try:
            rules = self._storage.lifecycle_rules()
        except TieredStorageError as error:
            if str(error) != self._problem:
                _log.info(LogLine("cannot read the bucket's lifecycle rules", error=error))
            self._problem = str(error)
            return
        self._has_read_rules = True
        for rule in rules:
            if rule.can_affect(self._key_prefix):
                _log.warning(
                    LogLine(
                        "a rule of the bucket can delete or archive stored segments: remove it",
                        rule=rule,
                    )
                )
