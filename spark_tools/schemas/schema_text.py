"""Represents a schema as written, and defines the interface of decoders and registries. Pure."""

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
"""The limits of one schema: its text, the nesting of types, and their number when expanded."""


class SchemaFormat(Enum):
    """The encoding of keys or values; BINARY: not decoded."""

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
        """Raise UnsupportedError for a text that is too large."""
        size_bytes = len(self.text.encode(errors="surrogatepass"))
        if size_bytes > MAX_SCHEMA_BYTES:
            raise UnsupportedError(
                "a schema is too large", size_bytes=size_bytes, limit_bytes=MAX_SCHEMA_BYTES
            )

    def all_references(self) -> Iterator[tuple[str, SchemaText]]:
        """Yield all direct and indirect references, each name once, dependencies first."""
        found: dict[str, SchemaText] = {}
        for name, reference in self.references:
            found.update(reference.all_references())
            found.setdefault(name, reference)
        yield from found.items()


Decode = Callable[[bytes], object]
"""Decodes a payload to a value of the reader's schema. Invalid bytes can raise any Exception."""


Bools = NDArray[np.bool_]


class RowsReader(ABC):
    """Reads many payloads of the reader's own schema at once. Thread-safe."""

    @abstractmethod
    def read(self, payloads: pa.Array, header_bytes: int, wanted: Bools) -> tuple[pa.Array, Bools]:
        """Return the wanted rows as a column, with null for other rows, and which rows were read.

        The caller passes wanted rows that were not read to a decoder. Raises pa.ArrowInvalid if a
        row has an unsuitable value; then a decoder finds that row.
        """


class ColumnSchema(ABC):
    """The reader's schema of one column. Thread-safe after its construction."""

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """The column's type, which Spark reads unchanged."""

    @abstractmethod
    def decoder(self, writer: SchemaText | None) -> Decode:
        """Return the decoder for payloads of a writer's schema; it takes them without their header.

        None: payloads have the reader's schema and no header. Raises UnsupportedError for an
        unsupported writer's schema. The decoder raises for payloads that do not fit the reader's.
        """

    @property
    @abstractmethod
    def rows(self) -> RowsReader | None:
        """A reader of this schema's payloads that is much faster than a decoder, or None."""

    @abstractmethod
    def array(self, values: Sequence[object]) -> pa.Array:
        """Build a column of decoded values, null for None. Wrong values can raise any Exception."""


class SchemaSource(ABC):
    """Provides schemas by id and by subject. Not thread-safe."""

    @abstractmethod
    def by_id(self, schema_id: int) -> SchemaText:
        """Return the schema with the id that records have.

        Raises NotFoundError, UnsupportedError for an unknown format or a schema above a limit,
        InvalidConfigError if access is denied, and RetriableError if there is no answer.
        """

    @abstractmethod
    def of_subject(self, subject: str, version: int | None) -> SchemaText:
        """Return a version of a subject, the latest for None. Raises the errors of `by_id`."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


class NestingBudget:
    """Limits the number and nesting of types while a schema is expanded. Not thread-safe."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[str] = []

    def enter(self, name: str) -> None:
        """Start a type. Raises UnsupportedError if it contains itself, or at a limit."""
        self._count += 1
        if self._count > MAX_FIELDS:
            raise UnsupportedError("a schema has too many fields", most=MAX_FIELDS)
        if len(self._open) >= MAX_DEPTH:
            raise UnsupportedError("a schema is nested too deeply", most=MAX_DEPTH)
        if name and name in self._open:
            raise UnsupportedError("a type contains itself; Spark does not allow that", type=name)
        self._open.append(name)

    def leave(self) -> None:
        """End the type that started last."""
        self._open.pop()
