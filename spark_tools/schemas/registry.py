"""Reads schemas from a registry with Confluent's REST API. Uses Confluent's client.

Limits the time and attempts of each request, and the size and references of a schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from rsm.segment.errors import (
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    UnsupportedError,
)
from spark_tools.schemas.schema_text import SchemaFormat, SchemaSource, SchemaText
from spark_tools.schemas.settings import RegistrySettings

T = TypeVar("T")

_MAX_REFERENCES = 100
_MAX_REFERENCE_DEPTH = 16
_NOT_FOUND = 404
_DENIED = (401, 403)


class SchemaRegistry(SchemaSource):
    """A registry that is reached over HTTP. The client caches schemas. Not thread-safe."""

    def __init__(self, settings: RegistrySettings) -> None:
        """Raise InvalidConfigError if the client rejects the settings."""
        self._url = settings.url
        try:
            self._client = SchemaRegistryClient(dict(settings.client))
        except (ValueError, TypeError, OSError) as error:
            # The texts of these errors name files, keys and URLs, never secrets.
            raise InvalidConfigError(
                "cannot configure the schema registry's client", url=self._url, reason=error
            ) from None

    def by_id(self, schema_id: int) -> SchemaText:
        schema = self._asked(
            lambda: self._client.get_schema(schema_id), "schema id", str(schema_id)
        )
        return self._text(schema, 0, [0])

    def of_subject(self, subject: str, version: int | None) -> SchemaText:
        return self._of_subject(subject, version, 0, [0])

    def close(self) -> None:
        self._client.close()

    def _of_subject(
        self, subject: str, version: int | None, depth: int, count: list[int]
    ) -> SchemaText:
        found = self._asked(
            lambda: (
                self._client.get_latest_version(subject)
                if version is None
                else self._client.get_version(subject, version)
            ),
            "subject",
            f"{subject} version {version or 'latest'}",
        )
        return self._text(found.schema, depth, count)

    def _text(self, schema: Schema, depth: int, count: list[int]) -> SchemaText:
        references: list[SchemaReference] = list(schema.references or ())
        count[0] += len(references)
        if count[0] > _MAX_REFERENCES or depth > _MAX_REFERENCE_DEPTH:
            raise UnsupportedError(
                "cannot read a schema: it has too many references, or they are nested too deeply",
                most=_MAX_REFERENCES,
                most_nested=_MAX_REFERENCE_DEPTH,
            )
        kinds = {each.value: each for each in SchemaFormat}
        kind = kinds.get(str(schema.schema_type or "AVRO").lower())
        if kind is None or schema.schema_str is None:
            raise UnsupportedError(
                "cannot read a schema: it has no text, or its format is not supported",
                found=schema.schema_type,
                expected="AVRO, PROTOBUF or JSON",
            )
        return SchemaText(
            format=kind,
            text=schema.schema_str,
            references=tuple(
                (
                    str(each.name),
                    self._of_subject(str(each.subject), each.version, depth + 1, count),
                )
                for each in references
            ),
        )

    def _asked(self, ask: Callable[[], T], kind: str, name: str) -> T:
        try:
            return ask()
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                raise NotFoundError(
                    f"cannot read from the schema registry: it does not have this {kind}",
                    name=name,
                    url=self._url,
                ) from error
            if error.http_status_code in _DENIED:
                raise InvalidConfigError(
                    "cannot read from the schema registry: it denies access",
                    url=self._url,
                    reason=error.error_message,
                    advice="Check the credentials for the registry",
                ) from error
            raise self._unreachable(error) from error
        except Exception as error:  # The client's HTTP library has many error classes.
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> RetriableError:
        return RetriableError(
            "cannot read from the schema registry",
            url=self._url,
            reason=str(error)[:200] or type(error).__name__,
        )
