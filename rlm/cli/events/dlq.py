"""`rlm dlq`: segments whose objects could not be deleted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table

from rlm.broker.dead_letters.dead_letter_log import read_dead_letters
from rlm.cli.invocation.named_topic import find_topic
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import Session, open_session
from rlm.cli.invocation.times import iso_time
from rlm.operator.dead_letter_retry import LetterRetry
from rlm.policy.request.dead_letters import LetterState, letter_state
from rlm.worker.external import client_properties, open_chunk_storage, storage_manager
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.spi import SegmentRecord
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import id_to_text

_WIDE = 240  # of a table that goes into a file or a pipe

_Topic = Annotated[
    str | None, typer.Argument(metavar="TOPIC", help="All topics, deleted ones too, if not given.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A letter and what became of it; `record` is the metadata's of its segment."""

    letter: DeadLetter
    state: LetterState
    record: SegmentRecord | None
    outcome: str = ""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    dlq = typer.Typer(
        help="Segments whose objects could not be deleted.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    dlq.command("list", help=_list.__doc__)(_list)
    dlq.command("retry", help=_retry.__doc__)(_retry)
    app.add_typer(dlq, name="dlq")


@with_cluster_options
def _list(
    topic: _Topic = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Show those that are settled, too.")
    ] = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Show the deletions that were given up and are still to be finished."""
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        rows = [
            row for row in _rows(session, topic) if everything or row.state is not LetterState.DONE
        ]
    _print(rows, as_json=as_json)


@with_cluster_options
def _retry(
    topic: _Topic = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Delete the objects of all open letters now; what still can't be deleted stays open."""
    cluster.config.required_storage()
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        rows = [row for row in _rows(session, topic) if row.state is LetterState.OPEN]
        if not dry_run:
            rows = list(_retried(session, rows))
    _print(rows, as_json=as_json)
    failed_count = sum(row.state is LetterState.OPEN for row in rows)
    if failed_count and not dry_run:
        raise RetriableError("not all could be deleted", left=failed_count)


def _rows(session: Session, topic: str | None) -> list[_Row]:
    with closing(_reader(session)) as reader:
        found = read_dead_letters(reader, session.clock, timeout_ms=session.remaining_ms())
    if found.unreadable_count:
        typer.echo(f"{found.unreadable_count} letters can't be read by this version", err=True)
    wanted = [each for each in found.letters if topic in (None, _topic_of(each))]
    if topic is not None and not wanted:  # nothing to be done for it, or not its name
        with reaching_cluster(session.config):
            find_topic(session.bootstrap.view((topic,)), topic)
    rows = [_row(session, letter) for letter in wanted]
    return sorted(rows, key=lambda row: (row.letter.metadata.topic_id_partition, _base(row)))


def _row(session: Session, letter: DeadLetter) -> _Row:
    record = session.metadata.segment(letter.metadata.segment_id)
    state = letter_state(letter, record, session.positions)
    return _Row(letter=letter, state=state, record=record)


def _retried(session: Session, rows: list[_Row]) -> Iterator[_Row]:
    with _letter_retry(session) as retry:
        for row in rows:
            assert row.record is not None, "an open letter's segment is known"
            try:
                retry.finish(row.record)
            except TieredStorageError as error:
                yield _Row(
                    letter=row.letter, state=row.state, record=row.record, outcome=str(error)
                )
            else:
                yield _Row(
                    letter=row.letter, state=LetterState.DONE, record=row.record, outcome="deleted"
                )


@contextmanager
def _letter_retry(session: Session) -> Iterator[LetterRetry]:
    config = session.config.required_storage()
    with closing(storage_manager(config, open_chunk_storage(config))) as storage:
        yield LetterRetry(session.metadata, storage, session.clock, uuid4)


def _reader(session: Session) -> KafkaTopicReader:
    name = session.config.manager.delete_dead_letter_topic
    return KafkaTopicReader(client_properties(session.config.cluster), name)


def _topic_of(letter: DeadLetter) -> str:
    return letter.metadata.topic_id_partition.topic


def _base(row: _Row) -> int:
    return row.letter.metadata.offsets.start_offset


def _print(rows: list[_Row], *, as_json: bool) -> None:
    with printing():
        if as_json:
            typer.echo(json.dumps({"dead_letters": [_as_json(row) for row in rows]}, indent=2))
        else:
            Console(width=None if sys.stdout.isatty() else _WIDE, markup=False).print(_table(rows))


def _table(rows: list[_Row]) -> Table:
    table = Table("topic", "partition", "base offset", box=None, pad_edge=False)
    for name in ("state", "attempts", "last attempt", "objects", "reason"):
        table.add_column(name)
    for row in rows:
        letter = row.letter
        table.add_row(
            _topic_of(letter),
            str(letter.metadata.topic_id_partition.partition),
            str(_base(row)),
            row.state.name,
            str(letter.attempts),
            iso_time(letter.last_attempt_ms),
            str(len(letter.object_keys)),
            row.outcome or letter.reason,
        )
    return table


def _as_json(row: _Row) -> Mapping[str, object]:
    letter, tip = row.letter, row.letter.metadata.topic_id_partition
    begun = letter.delete_started
    return {
        "topic": tip.topic,
        "topic_id": id_to_text(tip.topic_id),
        "partition": tip.partition,
        "segment_id": id_to_text(letter.metadata.segment_id.id),
        "base_offset": letter.metadata.offsets.start_offset,
        "end_offset": letter.metadata.offsets.end_offset,
        "size_bytes": letter.metadata.segment_size_bytes,
        "state": row.state.name,
        "attempts": letter.attempts,
        "first_attempt_ms": letter.first_attempt_ms,
        "last_attempt_ms": letter.last_attempt_ms,
        "reason": letter.reason,
        "objects": list(letter.object_keys),
        "metadata_partition": None if begun is None else begun.partition,
        "metadata_offset": None if begun is None else begun.offset,
        "outcome": row.outcome,
    }
