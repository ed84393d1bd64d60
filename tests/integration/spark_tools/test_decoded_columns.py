"""Values of Confluent's serializers as columns, with a real schema registry.

Confluent's deserializers give the expected values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rsm.segment.errors import InvalidConfigError
from spark_tools.cluster_topics import find_partitions
from spark_tools.export.command import command_parser, export
from spark_tools.schemas.protobuf_files import file_descriptor
from spark_tools.schemas.schema_text import SchemaFormat, SchemaText
from tests.e2e.broker_host import BrokerHost
from tests.integration.spark_tools.started_streams import finished_stream
from tests.segment_builder import build_batch, build_segment, record
from tests.services.schema_registry import SchemaRegistryServer
from tests.stored_topic import StoredTopic

_CHECKOUT = Path(__file__).resolve().parents[3]
_OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string"}],
}
_NEW: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "items", "type": {"type": "array", "items": "double"}, "default": []},
    ],
}
_PROTO = """syntax = "proto3";
message Order { int64 id = 1; optional string note = 2; repeated double items = 3; }
message Other { int64 id = 1; }
"""
_JSON = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "items": {"type": "array", "items": {"type": "number"}},
    },
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistryServer]:
    with SchemaRegistryServer(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.fixture(scope="module")
def client(registry: SchemaRegistryServer) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.registry_url}) as opened:
        yield opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """A stored topic with the values of a test, and how Spark loads it."""

    spark: SparkSession
    host: BrokerHost
    topic: str
    registry_url: str

    def store(self, values: Sequence[bytes | None]) -> None:
        self.host.cluster.create_topic(self.topic)
        servers = {"bootstrap.servers": self.host.cluster.bootstrap_servers}
        (partition,) = find_partitions(servers, [self.topic], timeout_ms=30_000)[self.topic]
        batch = build_batch([record(offset, value) for offset, value in enumerate(values)])
        with self.host.metadata() as metadata:
            topic = StoredTopic(partition, self.host.store, metadata)
            topic.store(build_segment([batch]), max_timestamp_ms=1)
            topic.close()

    def load(self, **options: str) -> DataFrame:
        reader = self.spark.read.format("rlm").option("config", str(self.host.config_path))
        reader = reader.option("schema.registry.url", self.registry_url)
        return reader.options(**{"subscribe": self.topic, "columns": "value", **options}).load()

    def values(self, **options: str) -> list[dict[str, Any] | None]:
        rows = self.load(**options).collect()
        return [None if row.value is None else row.value.asDict(recursive=True) for row in rows]

    @property
    def context(self) -> SerializationContext:
        return SerializationContext(self.topic, MessageField.VALUE)


@pytest.fixture
def orders(
    spark: SparkSession, host: BrokerHost, topic_name: str, registry: SchemaRegistryServer
) -> Orders:
    return Orders(spark=spark, host=host, topic=topic_name, registry_url=registry.registry_url)


def written_avro(orders: Orders, client: SchemaRegistryClient) -> list[bytes | None]:
    """Return a value of each version of the schema, and a tombstone."""
    old = AvroSerializer(client, json.dumps(_OLD))({"id": 1, "gone": "x"}, orders.context)
    new = AvroSerializer(client, json.dumps(_NEW))
    value = {"id": 1 << 40, "note": "n", "items": [1.5, 2.5]}
    return [old, new(value, orders.context), None]


def test_avro_when_records_have_several_schemas_then_as_confluents_deserializer_reads_them(
    orders: Orders, client: SchemaRegistryClient
) -> None:
    """Both with the latest version, and with a given schema that no record has."""
    written = written_avro(orders, client)
    orders.store(written)

    removed = {**_OLD, "fields": [{"name": "id", "type": "double"}]}
    for schema, chosen in ((_NEW, {}), (removed, {"valueSchema": json.dumps(removed)})):
        oracle = AvroDeserializer(client, json.dumps(schema))
        assert orders.values(valueFormat="avro", **chosen) == [
            None if each is None else oracle(each, orders.context) for each in written
        ]

    streamed = (
        orders.spark.readStream.format("rlm")
        .option("config", str(orders.host.config_path))
        .option("schema.registry.url", orders.registry_url)
        .options(subscribe=orders.topic, valueFormat="avro", startingOffsets="earliest")
        .load()
        .writeStream.format("memory")
        .queryName("decoded")
        .trigger(availableNow=True)
    )
    finished_stream(streamed.start)
    ids = orders.spark.sql("select value.id from decoded order by offset").collect()
    assert [row.id for row in ids] == [1, 1 << 40, None]
    frame = orders.load(valueFormat="avro", columns="offset,value")
    assert frame.schema.simpleString() == (
        "struct<offset:bigint,value:struct<id:bigint,note:string,items:array<double>>>"
    )
    assert [row.id for row in frame.where("value.note = 'n'").select("value.id").collect()] == [
        1 << 40
    ]
    kept = orders.load(valueFormat="avro", columns="offset,value")
    later = {**_NEW, "fields": [*_NEW["fields"], {"name": "x", "type": "int", "default": 7}]}
    client.register_schema(f"{orders.topic}-value", Schema(json.dumps(later), "AVRO"))
    assert [row.offset for row in kept.collect()] == [0, 1, 2]
    reloaded = orders.load(valueFormat="avro").select("value.x")
    assert [row.x for row in reloaded.collect()] == [7, 7, None]


def test_undecodable_records_when_permissive_then_a_column_has_why_else_the_task_fails(
    orders: Orders, client: SchemaRegistryClient
) -> None:
    _, good, tombstone = written_avro(orders, client)
    assert good is not None
    unknown = b"\x00" + (999_999).to_bytes(4, "big") + b"x"
    orders.store([good, b"no header", unknown, good[:6], tombstone, good])

    frame = orders.load(valueFormat="avro", decodeMode="permissive", columns="offset,value")
    rows = {row.offset: row for row in frame.collect()}

    assert frame.columns == ["offset", "value", "value_error", "value_raw"]
    assert [offset for offset, row in rows.items() if row.value_error] == [1, 2, 3]
    assert "magic byte" in rows[1].value_error
    assert "does not have this schema id" in rows[2].value_error
    assert [rows[offset].value_raw for offset in (0, 1, 2, 4)] == [
        None, b"no header", unknown, None,
    ]  # fmt: skip
    assert [rows[offset].value and rows[offset].value.id for offset in range(6)] == [
        1 << 40, None, None, None, None, 1 << 40,
    ]  # fmt: skip
    chosen = (
        orders.spark.read.format("rlm")
        .schema("value_error string, offset bigint")
        .options(
            **{
                "config": str(orders.host.config_path),
                "subscribe": orders.topic,
                "valueFormat": "avro",
                "decodeMode": "permissive",
                "schema.registry.url": orders.registry_url,
            }
        )
    )
    assert [row.offset for row in chosen.load().where("value_error is null").collect()] == [0, 4, 5]
    with pytest.raises(PySparkException) as caught:
        orders.load(valueFormat="avro").collect()
    for part in ("cannot decode a record", f"topic={orders.topic}", "partition=0", "offset=1"):
        assert part in str(caught.value)


def test_export_when_values_are_decoded_then_typed_columns_and_undecodable_ones_are_counted(
    orders: Orders, client: SchemaRegistryClient, tmp_path: Path
) -> None:
    """A later export of the bytes is refused: its files would have another type."""
    old, new, tombstone = written_avro(orders, client)
    orders.store([old, b"bad", new, tombstone])
    arguments = [
        f"--config={orders.host.config_path}",
        f"--summary={tmp_path / 'summary.json'}",
        orders.topic,
        str(tmp_path / "out"),
    ]
    decoded = [
        "--option=valueFormat=avro",
        f"--option=schema.registry.url={orders.registry_url}",
        "--option=decodeMode=permissive",
    ]

    assert export(command_parser().parse_args([*decoded, *arguments])) == 0

    rows = orders.spark.read.parquet(str(tmp_path / "out" / "data")).orderBy("offset")
    assert [(row.value and row.value.id, row.value_raw) for row in rows.collect()] == [
        (1, None), (None, b"bad"), (1 << 40, None), (None, None),
    ]  # fmt: skip
    counts = json.loads((tmp_path / "summary.json").read_text())["counts"]
    assert (counts["records"], counts["undecodable"]) == (4, 1)
    with pytest.raises(InvalidConfigError, match="another directory"):
        export(command_parser().parse_args(arguments))
    strict = command_parser().parse_args([*decoded[:2], *arguments[:-1], str(tmp_path / "strict")])
    with pytest.raises(PySparkException, match=r"cannot decode a record.*offset=1"):
        export(strict)


def test_protobuf_and_json_when_read_then_as_confluents_deserializers_read_them(
    orders: Orders, client: SchemaRegistryClient
) -> None:
    schema = SchemaText(format=SchemaFormat.PROTOBUF, text=_PROTO)
    order: type[Message] = GetMessageClass(file_descriptor(schema).message_types_by_name["Order"])
    value = {"id": 5, "note": "n", "items": [1.5]}
    protobuf = ProtobufSerializer(order, client, {"use.deprecated.format": False})(
        order(**value), orders.context
    )
    subject = f"{orders.topic}-json"
    of_json = JSONSerializer(
        json.dumps(_JSON), client, conf={"subject.name.strategy": lambda *_: subject}
    )(value, orders.context)
    orders.store([protobuf, of_json])
    by_protobuf = ProtobufDeserializer(order, {"use.deprecated.format": False}, client)
    by_json = JSONDeserializer(json.dumps(_JSON), schema_registry_client=client)

    ends = {"endingOffsets": json.dumps({orders.topic: {"0": 1}})}
    starts = {"startingOffsets": json.dumps({orders.topic: {"0": 1}})}

    read = by_protobuf(protobuf, orders.context)
    expected = MessageToDict(read, preserving_proto_field_name=True)
    assert orders.values(valueFormat="protobuf", **ends) == [
        {**expected, "id": int(expected["id"])}
    ]
    assert orders.values(valueFormat="json", valueSubject=subject, **starts) == [
        by_json(of_json, orders.context)
    ]


def test_documented_example_when_run_then_it_shows_both_kinds(
    orders: Orders, client: SchemaRegistryClient, capsys: pytest.CaptureFixture[str]
) -> None:
    _, good, _ = written_avro(orders, client)
    orders.store([good, b"bad"])
    docs = (_CHECKOUT / "docs" / "spark.md").read_text()
    section = docs.split("### Columns by schema\n", 1)[1]
    example = section.split("```python\n", 1)[1].split("```", 1)[0]
    for documented, actual in (
        ("rlm.properties", str(orders.host.config_path)),
        ('"orders"', f'"{orders.topic}"'),
        ("http://registry:8081", orders.registry_url),
    ):
        assert documented in example
        example = example.replace(documented, actual)

    exec(example, {"spark": orders.spark})  # noqa: S102 - of the project's docs

    shown = capsys.readouterr().out
    assert "|     0|1099511627776|   n|[1.5, 2.5]|" in shown
    assert "[62 61 64]|" in shown


def test_load_when_no_schema_can_be_had_then_it_says_so(
    orders: Orders,
) -> None:
    """An unknown subject, and an unreachable registry whose URL has a password."""
    orders.store([b"x"])

    with pytest.raises(PySparkException, match="does not have this subject"):
        orders.load(valueFormat="avro", valueSubject=f"absent-{uuid4()}")
    unreachable = {
        "schema.registry.url": "http://127.0.0.1:1",
        "schema.registry.basic.auth.user.info": "someone:a-secret",
        "schema.registry.max.retries": "1",
        "schema.registry.request.timeout.ms": "1000",
    }
    with pytest.raises(PySparkException, match="cannot read from the schema registry") as caught:
        orders.load(valueFormat="avro", **unreachable)
    assert "a-secret" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_given_schema_when_there_is_no_registry_then_values_have_no_header(
    spark: SparkSession, orders: Orders, tmp_path: Path
) -> None:
    schema = tmp_path / "order.json"
    schema.write_text(json.dumps(_JSON))
    orders.store([b'{"id":1}', b"{", None])

    frame = spark.read.format("rlm").options(
        config=str(orders.host.config_path),
        subscribe=orders.topic,
        valueFormat="json",
        valueSchema=str(schema),
        decodeMode="permissive",
    )
    rows = frame.load().select("value.id", "value_raw").collect()

    assert [tuple(row) for row in rows] == [(1, None), (None, b"{"), (None, None)]
