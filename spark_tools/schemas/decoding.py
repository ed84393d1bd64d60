"""Selects the columns to decode and their schemas. The driver does so for all executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rsm.segment.errors import (
    InvalidConfigError,
    NotFoundError,
    UnsupportedError,
)
from spark_tools.rows.schema import spark_ddl
from spark_tools.schemas.bindings import open_column, open_registry
from spark_tools.schemas.column_types import spark_type
from spark_tools.schemas.schema_text import ColumnSchema, SchemaFormat, SchemaText
from spark_tools.schemas.settings import DecodeMode, DecodeSettings, RegistrySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReader:
    """A column to decode, with the reader's schema. Spark sends this object to executors."""

    column: str
    schema: SchemaText
    message: str | None

    def open(self) -> ColumnSchema:
        """Open the schema.

        Raises UnsupportedError if the schema is invalid or has no column type, and
        InvalidConfigError if a package is not installed.
        """
        return open_column(self.schema, self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The columns to decode, and the mode. Spark sends this object to executors.

    `output` lists the columns of rows, in order. If it is empty, rows have the columns of the
    options; in permissive mode, error and raw columns follow.
    """

    readers: tuple[ColumnReader, ...] = ()
    registry: RegistrySettings | None = None
    mode: DecodeMode = DecodeMode.FAILFAST
    output: tuple[str, ...] = ()

    def columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of rows, given the columns of records."""
        if self.output:
            return self.output
        added: list[str] = []
        if self.mode is DecodeMode.PERMISSIVE:
            for each in self.readers:
                if each.column in columns:
                    added += [error_column(each.column), raw_column(each.column)]
        return (*columns, *added)

    def needed(self, columns: Sequence[str], output: Sequence[str]) -> tuple[str, ...]:
        """Return those record columns that are needed for the columns `output`."""
        return tuple(
            name for name in columns if {name, error_column(name), raw_column(name)} & set(output)
        )

    def spark_types(self, columns: Sequence[str], *, quoted: bool) -> Mapping[str, str]:
        """Return the Spark types of decoded columns, and of their error and raw columns."""
        types: dict[str, str] = {}
        for each in self.readers:
            if each.column in columns:
                types[each.column] = spark_type(each.open().arrow_type, quoted=quoted)
                if self.mode is DecodeMode.PERMISSIVE:
                    types[error_column(each.column)] = "string"
                    types[raw_column(each.column)] = "binary"
        return types


NOT_DECODING = Decoding()
"""Decodes no column."""


def decoded_ddl(columns: Sequence[str], decoding: Decoding) -> str:
    """Return the columns of rows as Spark's DDL, given the columns of records."""
    types = decoding.spark_types(columns, quoted=True)
    return spark_ddl(decoding.columns(columns), types)


def error_column(column: str) -> str:
    """Return the name of the column that gives the reason for an undecodable record."""
    return f"{column}_error"


def raw_column(column: str) -> str:
    """Return the name of the column with the bytes of an undecodable record."""
    return f"{column}_raw"


def resolve(settings: DecodeSettings, topics: Sequence[str]) -> Decoding:
    """Select the readers' schemas. Runs on the driver.

    Raises InvalidConfigError if a schema is missing or unusable, a package is not installed or the
    registry denies access. Raises RetriableError if a request to the registry fails.
    """
    if not settings.columns:
        return Decoding()
    registry = None if settings.registry is None else open_registry(settings.registry)
    readers = []
    try:
        for each in settings.columns:
            try:
                if each.schema is not None or registry is None:
                    schema = SchemaText(format=each.format, text=each.schema or "")
                else:
                    subject = each.subject or _subject(each.column, topics)
                    schema = registry.of_subject(subject, each.version)
                _require_format(schema, each.format)
                reader = ColumnReader(column=each.column, schema=schema, message=each.message)
                spark_type(reader.open().arrow_type, quoted=True)
            except (UnsupportedError, NotFoundError) as error:
                raise InvalidConfigError(
                    "cannot decode a column: its schema is unusable",
                    column=each.column,
                    reason=error,
                ) from error
            readers.append(reader)
    finally:
        if registry is not None:
            registry.close()
    return Decoding(readers=tuple(readers), registry=settings.registry, mode=settings.mode)


def _require_format(schema: SchemaText, expected: SchemaFormat) -> None:
    if schema.format is not expected:
        raise UnsupportedError(
            "cannot decode the column: the schema's format differs from the column's",
            found=schema.format.value,
            expected=expected.value,
        )


def _subject(column: str, topics: Sequence[str]) -> str:
    """Return the subject by Confluent's TopicNameStrategy.

    Raises InvalidConfigError unless exactly one topic is read.
    """
    if len(topics) != 1:
        raise InvalidConfigError(
            "cannot decode a column: its default subject requires exactly one topic",
            column=column,
            topics=len(topics),
            advice=f"Set `{column}Subject`",
        )
    return f"{topics[0]}-{column}"
