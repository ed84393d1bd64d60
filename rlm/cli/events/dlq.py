"""`rlm dlq`: lists dead letters, and retries their deletions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

import typer

from rlm.broker.dead_letters.dead_letter_log import read_dead_letters
from rlm.cli.invocation.amounts import iso_time
from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.named_topic import find_topic
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.operator.dead_letter_retry import DeadLetterRetry
from rlm.policy.request.dead_letters import DeadLetterState, dead_letter_state
from rlm.status.document_parts import PARTITION
from rlm.worker.cluster_access import client_properties
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.spi import SegmentRecord
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.config.values import require_topic_name
from rsm.program.confirmation import confirm
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import id_to_text

_DEAD_LETTER = JsonShape(
    name="DeadLetter",
    meaning="A failed deletion of a segment's objects. `rlm dlq retry` or `rlm-repair` finishes "
    "the deletion.",
    fields={
        **PARTITION,
        "segment_id": JsonField(JsonKind.ID, "The segment."),
        "base_offset": JsonField(JsonKind.OFFSET, "The segment's first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after the segment."),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of the segment's log."),
        "state": JsonField(
            JsonKind.TEXT,
            "; ".join(f"`{each.name}`: {each.value}" for each in DeadLetterState) + ".",
        ),
        "attempts": JsonField(JsonKind.COUNT, "Number of failed attempts."),
        "first_attempt_ms": JsonField(JsonKind.TIME, "When the first attempt failed."),
        "last_attempt_ms": JsonField(JsonKind.TIME, "When the last attempt failed."),
        "reason": JsonField(JsonKind.TEXT, "Why the last attempt failed."),
        "objects": JsonField(JsonKind.TEXT, "The objects' keys in the store.", is_list=True),
        "metadata_partition": JsonField(
            JsonKind.COUNT,
            "The metadata topic's partition with the record of the deletion's start; null if "
            "unknown.",
            is_nullable=True,
        ),
        "metadata_offset": JsonField(
            JsonKind.OFFSET, "The offset of that record; null if unknown.", is_nullable=True
        ),
        "outcome": JsonField(
            JsonKind.TEXT,
            "The result of `rlm dlq retry`: `deleted`, or the error; empty if nothing was tried.",
        ),
    },
)
DEAD_LETTERS_DOCUMENT = JsonShape(
    name="DeadLetters",
    meaning="The selected dead letters.",
    fields={
        "dead_letters": JsonField(
            _DEAD_LETTER, "The dead letters, by partition and base offset.", is_list=True
        )
    },
)

_COLUMNS = (
    TextColumn(name="partition"),
    TextColumn(name="base offset", is_number=True),
    TextColumn(name="state"),
    TextColumn(name="attempts", is_number=True),
    TextColumn(name="last attempt"),
    TextColumn(name="objects", is_number=True),
    TextColumn(name="reason", is_movable=True),
)
_LIST_EXAMPLE = "Example: rlm dlq list orders --json --config rlm.properties"
_RETRY_EXAMPLE = "Example: rlm dlq retry orders --dry-run --config rlm.properties"


def _require_any_topic_name(text: str | None) -> str | None:
    return None if text is None else require_topic_name(text)


_Topic = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC",
        help="Only this topic; by default all topics, also deleted ones.",
        callback=_require_any_topic_name,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """Represents a dead letter and its outcome; `record` is the metadata of its segment."""

    dead_letter: DeadLetter
    state: DeadLetterState
    record: SegmentRecord | None
    outcome: str = ""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    dlq = typer.Typer(
        help="List and retry failed deletions of stored objects.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    dlq.command("list", help=_list.__doc__, epilog=_LIST_EXAMPLE)(_list)
    dlq.command("retry", help=_retry.__doc__, epilog=_RETRY_EXAMPLE)(_retry)
    app.add_typer(dlq, name="dlq")


@with_cluster_options
def _list(
    topic: _Topic = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list dead letters whose deletion has finished.")
    ] = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """List dead letters, except those of finished deletions."""
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        rows = [
            row
            for row in _rows(session, topic)
            if everything or row.state is not DeadLetterState.DONE
        ]
    _print(rows, as_json=as_json)


@with_cluster_options
@deletes()
def _retry(
    topic: _Topic = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")
    ] = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Delete the objects of open dead letters now.

    A dead letter stays open if its objects still cannot be deleted.
    """
    cluster.config.required_storage()
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        rows = [row for row in _rows(session, topic) if row.state is DeadLetterState.OPEN]
        if rows and not dry_run:
            objects_count = sum(len(row.dead_letter.object_keys) for row in rows)
            confirm(f"Delete objects: {objects_count} (segments: {len(rows)})?", yes=yes)
            rows = list(_retried(session, rows))
    _print(rows, as_json=as_json)
    failed_count = sum(row.state is DeadLetterState.OPEN for row in rows)
    if failed_count and not dry_run:
        raise RetriableError(
            "cannot delete all objects: some deletions failed again",
            left=failed_count,
            advice="Correct the errors in the output, then run the command again",
        )


def _rows(session: CommandSession, topic: str | None) -> list[DeadLetterRow]:
    with closing(_reader(session)) as reader:
        found = read_dead_letters(reader, session.clock, timeout_ms=session.remaining_ms())
    if found.unreadable_count:
        typer.echo(f"rlm: skipped unreadable dead letters: {found.unreadable_count}", err=True)
    wanted = [each for each in found.dead_letters if topic in (None, _topic_of(each))]
    if topic is not None and not wanted:
        # An unknown topic must not look like one without dead letters.
        with reaching_cluster(session.config):
            find_topic(session.bootstrap.view((topic,)), topic)
    rows = [_row(session, dead_letter) for dead_letter in wanted]
    return sorted(rows, key=lambda row: (row.dead_letter.metadata.topic_id_partition, _base(row)))


def _row(session: CommandSession, dead_letter: DeadLetter) -> DeadLetterRow:
    record = session.metadata.segment(dead_letter.metadata.segment_id)
    state = dead_letter_state(dead_letter, record, session.positions)
    return DeadLetterRow(dead_letter=dead_letter, state=state, record=record)


def _retried(session: CommandSession, rows: list[DeadLetterRow]) -> Iterator[DeadLetterRow]:
    with _dead_letter_retry(session) as retry:
        for row in rows:
            assert row.record is not None, "the metadata has an open dead letter's segment"
            try:
                retry.finish(row.record)
            except TieredStorageError as error:
                yield DeadLetterRow(
                    dead_letter=row.dead_letter,
                    state=row.state,
                    record=row.record,
                    outcome=str(error),
                )
            else:
                yield DeadLetterRow(
                    dead_letter=row.dead_letter,
                    state=DeadLetterState.DONE,
                    record=row.record,
                    outcome="deleted",
                )


@contextmanager
def _dead_letter_retry(session: CommandSession) -> Iterator[DeadLetterRetry]:
    config = session.config.required_storage()
    with closing(open_storage_manager(config, open_chunk_storage(config))) as storage:
        yield DeadLetterRetry(session.metadata, storage, session.clock, uuid4)


def _reader(session: CommandSession) -> KafkaTopicReader:
    name = session.config.manager.delete_dead_letter_topic
    return KafkaTopicReader(client_properties(session.config.cluster), name)


def _topic_of(dead_letter: DeadLetter) -> str:
    return dead_letter.metadata.topic_id_partition.topic


def _base(row: DeadLetterRow) -> int:
    return row.dead_letter.metadata.offsets.start_offset


def _print(rows: list[DeadLetterRow], *, as_json: bool) -> None:
    with printing():
        if as_json:
            typer.echo(json.dumps(dead_letters_json(rows), indent=2))
        else:
            print_lines(dead_letter_lines(rows, width=output_width()))


def dead_letter_lines(rows: Sequence[DeadLetterRow], *, width: int | None) -> Iterator[str]:
    """Yield the table."""
    if not rows:
        yield "no dead letters"
    yield from table_lines(_COLUMNS, map(_line, rows), width=width)


def _line(row: DeadLetterRow) -> TextRow:
    dead_letter, tip = row.dead_letter, row.dead_letter.metadata.topic_id_partition
    return TextRow(
        cells=(
            f"{tip.topic}:{tip.partition}",
            str(_base(row)),
            row.state.name,
            str(dead_letter.attempts),
            iso_time(dead_letter.last_attempt_ms),
            str(len(dead_letter.object_keys)),
            row.outcome or dead_letter.reason,
        )
    )


def dead_letters_json(rows: list[DeadLetterRow]) -> Mapping[str, object]:
    """Return the output for programs."""
    return {"dead_letters": [_as_json(row) for row in rows]}


def _as_json(row: DeadLetterRow) -> Mapping[str, object]:
    dead_letter, tip = row.dead_letter, row.dead_letter.metadata.topic_id_partition
    started = dead_letter.delete_started
    return {
        "topic": tip.topic,
        "topic_id": id_to_text(tip.topic_id),
        "partition": tip.partition,
        "segment_id": id_to_text(dead_letter.metadata.segment_id.id),
        "base_offset": dead_letter.metadata.offsets.start_offset,
        "end_offset": dead_letter.metadata.offsets.end_offset,
        "size_bytes": dead_letter.metadata.segment_size_bytes,
        "state": row.state.name,
        "attempts": dead_letter.attempts,
        "first_attempt_ms": dead_letter.first_attempt_ms,
        "last_attempt_ms": dead_letter.last_attempt_ms,
        "reason": dead_letter.reason,
        "objects": list(dead_letter.object_keys),
        "metadata_partition": None if started is None else started.partition,
        "metadata_offset": None if started is None else started.offset,
        "outcome": row.outcome,
    }
