"""Represents a schema's text, and defines the interfaces of decoders and registries. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rsm.segment.errors import UnsupportedError

MAX_SCHEMA_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_FIELDS = 10_000
"""The limits of a schema: the size of its text, the nesting of its types, and their number.

A type counts once for each use.
"""


class SchemaFormat(Enum):
    """The encoding of keys or values. BINARY means that they are not decoded."""

    BINARY = "binary"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaText:
    """A schema and the schemas that it refers to by name. Spark sends this object to executors."""

    format: SchemaFormat
    text: str
    references: tuple[tuple[str, SchemaText], ...] = ()

    def __post_init__(self) -> None:
        """Raise UnsupportedError if the text is too large."""
        size_bytes = len(self.text.encode(errors="surrogatepass"))
        if size_bytes > MAX_SCHEMA_BYTES:
            raise UnsupportedError(
                "cannot use a schema: it is too large",
                size_bytes=size_bytes,
                limit_bytes=MAX_SCHEMA_BYTES,
            )

    def all_references(self) -> Iterator[tuple[str, SchemaText]]:
        """Yield all direct and indirect references: each name once, dependencies first."""
        found: dict[str, SchemaText] = {}
        for name, reference in self.references:
            found.update(reference.all_references())
            found.setdefault(name, reference)
        yield from found.items()


Decode = Callable[[bytes], object]
"""Decodes a payload to a value of the reader's schema.

It can raise any Exception for invalid bytes.
"""


Bools = NDArray[np.bool_]


class RowsReader(ABC):
    """Reads many payloads of the reader's own schema at once. Thread-safe."""

    @abstractmethod
    def read(self, payloads: pa.Array, header_bytes: int, wanted: Bools) -> tuple[pa.Array, Bools]:
        """Return a column with the wanted rows, and a mask of the rows that were read.

        Other rows are null. If a wanted row was not read, the caller passes it to a decoder. Raises
        pa.ArrowInvalid if a value does not fit the column's type; a decoder then finds its row.
        """


class ColumnSchema(ABC):
    """The reader's schema of one column. Thread-safe after its construction."""

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Return the column's type, which Spark reads unchanged."""

    @abstractmethod
    def decoder(self, writer: SchemaText | None) -> Decode:
        """Return a decoder for payloads that were written with the schema `writer`.

        The caller removes the header of each payload. If `writer` is None, payloads have the
        reader's schema and were written without a header. Raises UnsupportedError if the writer's
        schema is not supported. The decoder raises an error if a payload does not fit.
        """

    @property
    @abstractmethod
    def rows(self) -> RowsReader | None:
        """Return a reader much faster than a decoder; None if it cannot read this schema."""

    @abstractmethod
    def array(self, values: Sequence[object]) -> pa.Array:
        """Build a column of decoded values; None is null.

        It can raise any Exception for wrong values.
        """


class SchemaSource(ABC):
    """Provides schemas by id and by subject. Not thread-safe."""

    @abstractmethod
    def by_id(self, schema_id: int) -> SchemaText:
        """Return the schema with an id from a payload's header.

        Raises NotFoundError, UnsupportedError for an unknown format or a schema above a limit,
        InvalidConfigError if access is denied, and RetriableError if the request fails.
        """

    @abstractmethod
    def of_subject(self, subject: str, version: int | None) -> SchemaText:
        """Return a version of a subject; the latest if `version` is None.

        Raises the same errors as `by_id`.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


class NestingBudget:
    """Limits the number and nesting of types while a schema is expanded. Not thread-safe."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[str] = []

    def enter(self, name: str) -> None:
        """Start a type. Raises UnsupportedError if it contains itself or exceeds a limit."""
        self._count += 1
        if self._count > MAX_FIELDS:
            raise UnsupportedError("cannot use a schema: it has too many types", most=MAX_FIELDS)
        if len(self._open) >= MAX_DEPTH:
            raise UnsupportedError("cannot use a schema: it is nested too deeply", most=MAX_DEPTH)
        if name and name in self._open:
            raise UnsupportedError(
                "cannot use a schema: a type contains itself; Spark does not allow that", type=name
            )
        self._open.append(name)

    def leave(self) -> None:
        """End the type that started last."""
        self._open.pop()
