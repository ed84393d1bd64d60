"""A schema as its author wrote it, and what decodes columns by it. Pure."""

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
"""Bounds of one schema: its text, how deep types are nested, types once names are expanded."""


class SchemaFormat(Enum):
    """How keys or values are encoded; BINARY: nothing is decoded."""

    BINARY = "binary"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaText:
    """A schema, and those that it refers to by name; executors are handed it."""

    format: SchemaFormat
    text: str
    references: tuple[tuple[str, SchemaText], ...] = ()

    def __post_init__(self) -> None:
        """UnsupportedError for one that is too large."""
        if len(self.text) > MAX_SCHEMA_BYTES:
            raise UnsupportedError(
                "a schema is too large", size_bytes=len(self.text), most=MAX_SCHEMA_BYTES
            )

    def all_references(self) -> Iterator[tuple[str, SchemaText]]:
        """Those of references too; what another refers to comes before it, each name once."""
        found: dict[str, SchemaText] = {}
        for name, reference in self.references:
            found.update(reference.all_references())
            found.setdefault(name, reference)
        yield from found.items()


Decode = Callable[[bytes], object]
"""A payload to a value of the reader's schema. Raises an Exception of any kind for bad bytes."""


Bools = NDArray[np.bool_]


class RowsReader(ABC):
    """Reads many payloads of the reader's own schema at once. Thread-safe."""

    @abstractmethod
    def read(self, payloads: pa.Array, header_bytes: int, wanted: Bools) -> tuple[pa.Array, Bools]:
        """The wanted rows as a column, null for others; and which of them were read.

        A row that was not read is for a decoder to judge. Raises pa.ArrowInvalid if one of the rows
        has a value that does not fit, which a decoder finds, too.
        """


class ColumnSchema(ABC):
    """The reader's schema of one column. Thread-safe once made."""

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """The column's type; Spark reads it as it is."""

    @abstractmethod
    def decoder(self, writer: SchemaText | None) -> Decode:
        """What decodes payloads of a writer's schema, after the wire format's header.

        None: payloads of the reader's schema, without any header. Raises UnsupportedError for a
        writer's schema that cannot be read by the reader's.
        """

    @property
    @abstractmethod
    def rows(self) -> RowsReader | None:
        """What reads payloads of this schema much faster than a decoder; None if nothing does."""

    @abstractmethod
    def array(self, values: Sequence[object]) -> pa.Array:
        """Decoded values, or None, as a column. Raises an Exception if one of them does not fit."""


class SchemaSource(ABC):
    """Where schemas are by id and by subject. One thread's."""

    @abstractmethod
    def by_id(self, schema_id: int) -> SchemaText:
        """The schema that records name.

        Raises NotFoundError; UnsupportedError for a schema of an unknown format or with too many
        references; InvalidConfigError if access is denied; RetriableError if there is no answer.
        """

    @abstractmethod
    def of_subject(self, subject: str, version: int | None) -> SchemaText:
        """A version of a subject, the latest for None. Raises what `by_id` does."""

    @abstractmethod
    def close(self) -> None:
        """Release connections."""


class NestingBudget:
    """Counts types while a schema is expanded, so that none grows without bound."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[str] = []

    def enter(self, name: str) -> None:
        """Begin a type. UnsupportedError if it is within itself, or there are too many."""
        self._count += 1
        if self._count > MAX_FIELDS:
            raise UnsupportedError("a schema has too many fields", most=MAX_FIELDS)
        if len(self._open) >= MAX_DEPTH:
            raise UnsupportedError("a schema is nested too deep", most=MAX_DEPTH)
        if name and name in self._open:
            raise UnsupportedError("a type contains itself, which columns cannot", type=name)
        self._open.append(name)

    def leave(self) -> None:
        """End the type that began last."""
        self._open.pop()
