"""Looks up the schemas of one task's records, once each."""

from __future__ import annotations

from rsm.segment.errors import NotFoundError, TieredStorageError, UnsupportedError
from spark_tools.schemas.schema_text import SchemaSource, SchemaText

MAX_SCHEMA_IDS = 1_000


class WriterSchemas:
    """The writers' schemas of one registry, for one task. Not thread-safe."""

    def __init__(self, registry: SchemaSource) -> None:
        """`close` closes the registry."""
        self._registry = registry
        self._found: dict[int, SchemaText | TieredStorageError] = {}

    def by_id(self, schema_id: int) -> SchemaText:
        """Return the schema; missing and unreadable ids are not requested again.

        Raises NotFoundError; UnsupportedError, also for more than MAX_SCHEMA_IDS;
        InvalidConfigError or RetriableError if the registry does not answer.
        """
        if schema_id not in self._found:
            if len(self._found) >= MAX_SCHEMA_IDS:
                raise UnsupportedError("too many schema ids in one task", most=MAX_SCHEMA_IDS)
            try:
                self._found[schema_id] = self._registry.by_id(schema_id)
            except (NotFoundError, UnsupportedError) as error:
                self._found[schema_id] = error
        found = self._found[schema_id]
        if isinstance(found, TieredStorageError):
            raise found
        return found

    def close(self) -> None:
        """Close the registry."""
        self._registry.close()
