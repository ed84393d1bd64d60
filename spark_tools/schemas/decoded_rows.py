"""Decodes columns of Arrow record batches on executors.

Looks up the writer's schema by the id in each payload. A task looks up at most MAX_SCHEMA_IDS ids.
Memory: the decoded values of one batch as Python objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rsm.segment.errors import (
    CorruptError,
    NotFoundError,
    TieredStorageError,
    UnsupportedError,
)
from spark_tools.schemas.bindings import open_registry
from spark_tools.schemas.decoding import Decoding, error_column, raw_column
from spark_tools.schemas.schema_text import Bools, ColumnSchema, Decode, SchemaSource, SchemaText
from spark_tools.schemas.settings import DecodeMode, RegistrySettings
from spark_tools.schemas.wire_format import HEADER_BYTES, schema_id_of

POSITION_COLUMNS = ("topic", "partition", "offset")
"""The columns that identify a record in errors. Batches to decode must have them."""

_MAX_REASON = 300
_MAX_HEADERS = 16
"""The maximum number of a batch's headers that are looked up before compiled code reads the batch.

Hostile payloads can have many different headers.
"""
MAX_SCHEMA_IDS = 1_000


class WriterSchemas:
    """The writers' schemas in one registry; looks up each id once. Not thread-safe."""

    def __init__(self, registry: SchemaSource) -> None:
        """Take the registry, which `close` closes."""
        self._registry = registry
        self._found: dict[int, SchemaText | TieredStorageError] = {}

    def by_id(self, schema_id: int) -> SchemaText:
        """Return the schema. Does not request a missing or unsupported schema again.

        Raises NotFoundError, UnsupportedError (also for more than MAX_SCHEMA_IDS ids),
        InvalidConfigError if access is denied, and RetriableError if the request fails.
        """
        if schema_id not in self._found:
            if len(self._found) >= MAX_SCHEMA_IDS:
                raise UnsupportedError(
                    "cannot look up a schema: too many schema ids in one task", most=MAX_SCHEMA_IDS
                )
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


class ColumnDecoder:
    """Decodes one column's payloads. Not thread-safe.

    If `writers` is None, the payloads have no header.
    """

    def __init__(
        self, schema: ColumnSchema, reader: SchemaText, writers: WriterSchemas | None
    ) -> None:
        """Take `schema`, which was opened from `reader`."""
        self._schema = schema
        self._reader = reader
        self._writers = writers
        self._bare = schema.decoder(None) if writers is None else None
        self._decoders: dict[bytes, Decode | str] = {}
        self._own: set[bytes] = set()
        """The headers with the id of the reader's own schema."""

    def decode(self, payloads: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Return the values (null if undecodable), and the errors by the payload's position.

        Raises InvalidConfigError if the registry denies access, and RetriableError if a request to
        the registry fails.
        """
        compiled = self._compiled(payloads)
        if compiled is None:
            return self._decoded(payloads, range(len(payloads)))
        array, left = compiled
        if not len(left):
            return array, {}
        others, errors = self._decoded(payloads.take(pa.array(left)), left.tolist())
        locations = np.arange(len(payloads))
        locations[left] = len(payloads) + np.arange(len(left))
        return pa.concat_arrays([array, others]).take(pa.array(locations)), errors

    def _compiled(self, payloads: pa.Array) -> tuple[pa.Array, NDArray[np.int64]] | None:
        """Return the values readable by compiled code, and the rows that it cannot read.

        Returns None if no compiled code can read the schema, if there are no payloads, or if a
        value does not fit the column's type.
        """
        rows = self._schema.rows
        if rows is None or not len(payloads):
            return None
        wanted = payloads.is_valid().to_numpy(zero_copy_only=False)
        is_null = ~wanted
        start = 0
        if self._bare is None:
            start = HEADER_BYTES
            wanted = wanted & self._is_own(payloads)
        try:
            array, is_read = rows.read(payloads, start, wanted)
        except pa.ArrowInvalid:  # The decoder then finds the row.
            return None
        return array, np.flatnonzero(~(is_read | is_null))

    def _is_own(self, payloads: pa.Array) -> Bools:
        """Return whether each payload's header has the id of the reader's own schema."""
        headers = pc.dictionary_encode(pc.binary_slice(payloads, 0, HEADER_BYTES))
        values = headers.dictionary.to_pylist()
        for each in values[:_MAX_HEADERS]:
            self._decoder_of(each)
        is_own = [each in self._own for each in values]
        codes = headers.indices.fill_null(len(is_own)).to_numpy(zero_copy_only=False)
        found: Bools = np.array([*is_own, False])[codes]
        return found

    def _decoded(
        self, payloads: pa.Array, positions: Sequence[int]
    ) -> tuple[pa.Array, dict[int, str]]:
        """Decode without compiled code. `positions` are the keys of the payloads' errors."""
        values: list[object] = []
        errors: dict[int, str] = {}
        for row, payload in zip(positions, payloads.to_pylist(), strict=True):
            decoded: object = None
            if payload is not None:
                decode = self._bare or self._decoder_of(payload)
                if isinstance(decode, str):
                    errors[row] = decode
                else:
                    start = 0 if self._bare else HEADER_BYTES
                    try:
                        decoded = decode(payload[start:])
                    except Exception as error:  # noqa: BLE001 - hostile bytes can raise any error
                        errors[row] = _reason(error)
            values.append(decoded)
        try:
            return self._schema.array(values), errors
        except Exception:  # noqa: BLE001 - a value does not fit; `_one_by_one` finds it
            return self._one_by_one(values, positions, errors), errors

    def _one_by_one(
        self, values: list[object], positions: Sequence[int], errors: dict[int, str]
    ) -> pa.Array:
        for row, value in enumerate(values):
            try:
                self._schema.array([value])
            except Exception as error:  # noqa: BLE001 - as above
                errors[positions[row]] = _reason(error)
                values[row] = None
        return self._schema.array(values)

    def _decoder_of(self, payload: bytes) -> Decode | str:
        """Return the decoder of a payload; if there is none, the reason."""
        header = payload[:HEADER_BYTES]
        found = self._decoders.get(header)
        if found is None:
            try:
                found = self._of_id(schema_id_of(payload), header)
            except (CorruptError, NotFoundError, UnsupportedError) as error:
                found = _reason(error)
            if len(self._decoders) < MAX_SCHEMA_IDS:
                self._decoders[header] = found
        return found

    def _of_id(self, schema_id: int, header: bytes) -> Decode:
        assert self._writers is not None
        writer = self._writers.by_id(schema_id)
        if writer.format is not self._reader.format:
            raise UnsupportedError(
                "cannot decode the record: its schema's format differs from the column's",
                schema_id=schema_id,
                found=writer.format.value,
                expected=self._reader.format.value,
            )
        if writer == self._reader:
            self._own.add(header)
        try:
            return self._schema.decoder(writer)
        except (TieredStorageError, OSError):
            raise
        except Exception as error:  # A hostile schema can raise any error.
            raise UnsupportedError(
                "cannot read a schema", schema_id=schema_id, reason=_reason(error)
            ) from error


def decoded_rows(
    batches: Iterator[pa.RecordBatch], decoding: Decoding, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with only `columns`, which can include decoded, error and raw columns.

    Batches must have POSITION_COLUMNS. In failfast mode, raises CorruptError for an undecodable
    record. Raises InvalidConfigError if the registry denies access, and RetriableError if a request
    to the registry fails.
    """
    wanted = [
        each
        for each in decoding.readers
        if {each.column, error_column(each.column), raw_column(each.column)} & set(columns)
    ]
    writers = None if decoding.registry is None else _writers(decoding.registry)
    try:
        decoders = {
            each.column: ColumnDecoder(each.open(), each.schema, writers) for each in wanted
        }
        for batch in batches:
            yield _decoded(batch, decoders, decoding, columns)
    finally:
        if writers is not None:
            writers.close()


def count_undecodable(batch: pa.RecordBatch, decoding: Decoding) -> int:
    """Return the number of rows that have a decoding error."""
    names = [error_column(each.column) for each in decoding.readers]
    errors = [batch.column(name).is_valid() for name in names if name in batch.schema.names]
    return pc.sum(reduce(pc.or_, errors)).as_py() or 0 if errors else 0


def _writers(settings: RegistrySettings) -> WriterSchemas:
    return WriterSchemas(open_registry(settings))


def _decoded(
    batch: pa.RecordBatch,
    decoders: Mapping[str, ColumnDecoder],
    decoding: Decoding,
    columns: Sequence[str],
) -> pa.RecordBatch:
    arrays = {name: batch.column(name) for name in columns if name in batch.schema.names}
    for name, decoder in decoders.items():
        payloads = batch.column(name)
        arrays[name], errors = decoder.decode(payloads)
        if decoding.mode is DecodeMode.FAILFAST:
            if errors:
                raise _located(batch, name, min(errors), errors)
            continue
        rows = range(batch.num_rows)
        arrays[error_column(name)] = pa.array([errors.get(row) for row in rows], pa.string())
        raw = [payloads[row].as_py() if row in errors else None for row in rows] if errors else None
        arrays[raw_column(name)] = (
            pa.nulls(batch.num_rows, pa.binary()) if raw is None else pa.array(raw, pa.binary())
        )
    return pa.RecordBatch.from_arrays([arrays[name] for name in columns], names=list(columns))


def _located(
    batch: pa.RecordBatch, column: str, row: int, errors: Mapping[int, str]
) -> CorruptError:
    position = {name: batch.column(name)[row].as_py() for name in POSITION_COLUMNS}
    return CorruptError(
        "cannot decode a record",
        column=column,
        **position,
        reason=errors[row],
        advice="Correct the schema, or set decodeMode to permissive to keep the record",
    )


def _reason(error: Exception) -> str:
    """Return the error as one line of at most `_MAX_REASON` characters."""
    text = str(error)
    if isinstance(error, EOFError):
        text = "the bytes end within a value"
    elif not isinstance(error, TieredStorageError):
        text = f"{type(error).__name__}: {text}"
    return " ".join(text.split())[:_MAX_REASON]
