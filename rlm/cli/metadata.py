"""`rlm metadata`: what stands in the metadata topic, record by record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from rlm.cli.metadata_lines import (
    Document,
    consumed_document,
    human_line,
    json_line,
    native_document,
)
from rlm.cli.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.output import printing
from rlm.config.load import CommandConfig
from rlm.log_lines import configure_command_logging
from rlm.outside import client_properties
from rlmm.consumer import MetadataConsumer
from rlmm.native import NATIVE_TOPIC, decode_native, topic_of_native
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.spi import MetadataPosition
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.segment.errors import CorruptError, RetriableError, UnsupportedError

_POLL_MS = 500
_MAX_RECORDS = 1_000

_TopicOption = Annotated[
    str | None, typer.Option("--topic", metavar="TOPIC", help="Only what concerns this topic.")
]
_NativeOption = Annotated[
    bool,
    typer.Option(
        "--native", help=f"Read {NATIVE_TOPIC}, the topic of Kafka's own tiered storage, instead."
    ),
]

_Poll = Callable[[], list[Document]]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(
        help="Look at the metadata topic, record by record.", no_args_is_help=True
    )
    commands.command("dump", epilog="Example: rlm metadata dump --topic orders --json")(_dump)
    commands.command("tail", epilog="Example: rlm metadata tail --topic orders")(_tail)
    app.add_typer(commands, name="metadata")


@with_cluster_options
def _dump(
    *,
    topic: _TopicOption = None,
    native: _NativeOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Print all records from the beginning to the present end.

    Records that were refused, and tombstones, are printed too: what is accepted is what
    `rlm status` shows.
    """
    settings = cluster.config
    timeout_ms = cluster.timeout_ms
    with _reader(settings, native=native) as reader:
        ends = _ends(settings, reader, timeout_ms)
        poll = _poll_from(reader, dict.fromkeys(ends, 0), topic, native=native)
        silent_ms = 0
        while any(reader.positions()[partition] < end for partition, end in ends.items()):
            before = reader.positions()
            _print(poll(), as_json=as_json)
            silent_ms = 0 if reader.positions() != before else silent_ms + _POLL_MS
            if silent_ms >= timeout_ms:
                raise RetriableError("the broker sends nothing", positions=before)


@with_cluster_options
def _tail(
    *,
    topic: _TopicOption = None,
    native: _NativeOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Print records as they come from now on, until Ctrl-C."""
    settings = cluster.config
    with _reader(settings, native=native) as reader:
        ends = _ends(settings, reader, cluster.timeout_ms)
        poll = _poll_from(reader, ends, topic, native=native)
        while True:
            _print(poll(), as_json=as_json)


def _ends(settings: CommandConfig, reader: KafkaTopicReader, timeout_ms: int) -> Mapping[int, int]:
    with reaching_cluster(settings):
        return reader.end_offsets(reader.partitions(timeout_ms), timeout_ms)


@contextmanager
def _reader(settings: CommandConfig, *, native: bool) -> Iterator[KafkaTopicReader]:
    configure_command_logging(sys.stderr)
    name = NATIVE_TOPIC if native else settings.metadata.topic_name
    reader = KafkaTopicReader(client_properties(settings.cluster), name)
    try:
        yield reader
    finally:
        reader.close()


def _poll_from(
    reader: KafkaTopicReader, positions: Mapping[int, int], topic: str | None, *, native: bool
) -> _Poll:
    """What reads the next records from there on."""
    if native:
        reader.assign({p: ReadPosition(offset=offset) for p, offset in positions.items()})
        return lambda: _native_documents(
            reader.poll(max_records=_MAX_RECORDS, timeout_ms=_POLL_MS), topic
        )
    consumer = MetadataConsumer(reader, positions, topic=topic)
    return lambda: [
        consumed_document(each)
        for each in consumer.poll(max_records=_MAX_RECORDS, timeout_ms=_POLL_MS)
    ]


def _native_documents(records: Sequence[TopicRecord], topic: str | None) -> list[Document]:
    documents = []
    for record in records:
        position = MetadataPosition(partition=record.partition, offset=record.offset)
        try:
            decoded = None if record.value is None else decode_native(record.value)
        except (CorruptError, UnsupportedError) as error:
            typer.echo(
                f"rlm: record skipped at {position.partition}:{position.offset}: {error}", err=True
            )
            continue
        if topic is None or (decoded is not None and topic_of_native(decoded) == topic):
            documents.append(native_document(position, record.append_time_ms, decoded))
    return documents


def _print(documents: Sequence[Document], *, as_json: bool) -> None:
    line = json_line if as_json else human_line
    with printing():
        for document in documents:
            sys.stdout.write(line(document) + "\n")
