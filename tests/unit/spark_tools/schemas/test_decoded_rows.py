from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, InvalidConfigError, NotFoundError, RetriableError
from spark_tools.option_values import OptionValues
from spark_tools.schemas.decoded_rows import (
    MAX_SCHEMA_IDS,
    ColumnDecoder,
    WriterSchemas,
    decoded_rows,
)
from spark_tools.schemas.decoding import Decoding, decoded_ddl, resolve
from spark_tools.schemas.schema_text import SchemaSource, SchemaText
from spark_tools.schemas.settings import DecodeSettings
from tests.unit.spark_tools.schemas.given_schemas import avro_bytes, avro_text, column_of

pytestmark = pytest.mark.unit

_SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a-b", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 3}},
    ],
}
_PHYSICAL = json.loads(json.dumps(_SCHEMA).replace('"logicalType"', '"other"'))


def decoding(**options: str) -> Decoding:
    given_options = {"valueFormat": "avro", "valueSchema": json.dumps(_SCHEMA), **options}
    return resolve(DecodeSettings.of(OptionValues(given_options)), ["orders"])


def rows(*values: bytes | None) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "topic": pa.repeat("orders", count),
            "partition": pa.repeat(pa.scalar(3, pa.int32()), count),
            "offset": pa.array(range(100, 100 + count), pa.int64()),
        }
    )


def payload(number: int, price: int) -> bytes:
    return avro_bytes(_PHYSICAL, {"a-b": number, "price": price.to_bytes(2, "big", signed=True)})


def test_rows_when_one_value_does_not_fit_its_column_then_it_alone_is_undecodable() -> None:
    """A decimal of more digits than the schema's precision."""
    chosen = decoding(decodeMode="permissive")
    columns = chosen.columns(("offset", "value"))
    batch = rows(payload(1, 999), payload(2, 1000), None, payload(4, -5))

    (found,) = decoded_rows(iter([batch]), chosen, columns)

    assert found.schema.names == ["offset", "value", "value_error", "value_raw"]
    values = found.column("value").to_pylist()
    assert [None if each is None else each["a-b"] for each in values] == [1, None, None, 4]
    assert [each is not None for each in found.column("value_error").to_pylist()] == [
        False, True, False, False,
    ]  # fmt: skip
    assert found.column("value_raw").to_pylist() == [None, payload(2, 1000), None, None]


def test_rows_when_failfast_then_the_error_says_where() -> None:
    batch = rows(payload(1, 1), b"", b"")

    with pytest.raises(CorruptError) as caught:
        list(decoded_rows(iter([batch]), decoding(), ("value",)))

    for part in (
        "column=value",
        "topic=orders",
        "partition=3",
        "offset=101",
        ": the bytes end",
    ):
        assert part in str(caught.value)


@given(st.lists(st.none() | st.binary(max_size=30), max_size=8))
def test_rows_when_payloads_are_hostile_then_each_is_a_value_or_has_an_error(
    payloads: list[bytes | None],
) -> None:
    chosen = decoding(decodeMode="permissive")

    (found,) = decoded_rows(iter([rows(*payloads)]), chosen, chosen.columns(("value",)))

    found.validate(full=True)
    for row, given_payload in zip(found.to_pylist(), payloads, strict=True):
        has_failed = row["value_error"] is not None
        assert row["value_raw"] == (given_payload if has_failed else None)
        assert (row["value"] is None) == (has_failed or given_payload is None)


class CountingSource(SchemaSource):
    """Has schema 1 alone; counts the requests."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def by_id(self, schema_id: int) -> SchemaText:
        self.asked.append(schema_id)
        if schema_id == 2:
            raise RetriableError("no answer")
        if schema_id != 1:
            raise NotFoundError("no such schema")
        return avro_text(_SCHEMA)

    def of_subject(self, subject: str, version: int | None) -> SchemaText:
        raise NotFoundError("no such subject", subject=subject, version=version)

    def close(self) -> None:
        """Do nothing: nothing is open."""


def avro_decoder(source: SchemaSource) -> ColumnDecoder:
    schema = avro_text(_SCHEMA)
    return ColumnDecoder(column_of(schema), schema, WriterSchemas(source))


def framed(schema_id: int, content: bytes = b"") -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + content


def test_schema_ids_when_bytes_are_hostile_then_a_bounded_number_is_asked_for() -> None:
    source = CountingSource()
    decoder = avro_decoder(source)
    good = framed(1, payload(7, 1))
    ids = [*range(10, 10 + 2 * MAX_SCHEMA_IDS), *range(10, 100)]
    payloads = [good, *(framed(each) for each in ids), good]

    values, errors = decoder.decode(pa.array(payloads, pa.binary()))

    assert [values[0].as_py()["a-b"], values[-1].as_py()["a-b"]] == [7, 7]
    assert sorted(errors) == list(range(1, len(ids) + 1))
    assert "no such schema" in errors[1]
    assert "too many schema ids" in errors[2 * MAX_SCHEMA_IDS]
    assert source.asked == [1, *ids[: MAX_SCHEMA_IDS - 1]]


def test_registry_when_it_does_not_answer_then_no_record_counts_as_undecodable() -> None:
    decoder = avro_decoder(CountingSource())

    with pytest.raises(RetriableError):
        decoder.decode(pa.array([framed(2)], pa.binary()))


class HostileSource(CountingSource):
    """A source whose schemas are invalid."""

    def by_id(self, schema_id: int) -> SchemaText:
        if schema_id == 1:
            return avro_text(_SCHEMA)
        return avro_text(
            [
                {"type": "fixed", "name": "F", "size": "x"},
                {"type": "bytes", "logicalType": "decimal"},
            ][schema_id % 2]
        )


def test_writers_schema_when_hostile_then_its_records_alone_are_undecodable() -> None:
    payloads = [framed(2), framed(1, payload(7, 1)), framed(3)]

    values, errors = avro_decoder(HostileSource()).decode(pa.array(payloads, pa.binary()))

    assert values[1].as_py()["a-b"] == 7
    assert "the size of a fixed type is invalid" in errors.pop(0)
    assert "Spark cannot represent its type" in errors.pop(2)
    assert not errors


def test_columns_when_described_to_spark_then_names_are_quoted() -> None:
    assert decoded_ddl(("offset", "value"), decoding()) == (
        "`offset` bigint, `value` struct<`a-b`:int,`price`:decimal(3,0)>"
    )


def test_schema_when_columns_cannot_have_it_then_it_is_the_users_error() -> None:
    with pytest.raises(InvalidConfigError, match="column=value"):
        decoding(valueSchema='{"type": "nonsense"}')


def test_subject_when_there_are_several_topics_then_it_must_be_given() -> None:
    options = {"valueFormat": "avro", "schema.registry.url": "http://127.0.0.1:1"}

    with pytest.raises(InvalidConfigError, match="valueSubject"):
        resolve(DecodeSettings.of(OptionValues(options)), ["a", "b"])
