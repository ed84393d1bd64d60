"""Carries out decisions on executors: deletes objects, writes records, and returns counts.

This module does not import Spark. For each dead letter, a task deletes objects, then writes the
outcome to Kafka. The task ends only when Kafka has acknowledged all outcomes. A task that fails or
runs twice repeats all of its work. This is harmless. An absent object counts as deleted, and the
fold refuses a second end of the same deletion. The last of several duplicate dead letters counts.

Several parts of a task run concurrently, because each request to the store has a high latency.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from rsm.segment.clock import Clock
from rsm.storage.chunk_storage import ChunkStorage
from spark_tools.connection import StoreConnection
from spark_tools.record_writer import OutgoingRecord
from spark_tools.repair.batch_decisions import BatchDecisions, DeadLetterLocation
from spark_tools.repair.dead_letters import (
    AnyDeadLetter,
    UnreadableDeadLetter,
    read_dead_letter,
    subject_of,
)
from spark_tools.repair.outcomes import (
    Outcome,
    OutcomeTopics,
    ReceivedDeadLetter,
    expected_outcome,
    outcome_of,
    unreadable,
)
from spark_tools.repair.proof import Decision
from spark_tools.repair.removal import remove

_DEAD_LETTERS_AT_ONCE = 1000
_PARTS_AT_ONCE = 4
_OBJECTS_BEFORE_COLLECTING = 100_000

DEAD_LETTER_COLUMNS = ("partition", "offset", "key", "value")
OUTCOMES = pa.schema(
    [
        pa.field("outcome", pa.string()),
        pa.field("dead_letters", pa.int64()),
        pa.field("segment", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
OUTCOMES_DDL = "outcome string, dead_letters long, segment string, reason string"
"""The number of dead letters per outcome; a row of one dead letter has its subject and reason."""

WriteRecords = Callable[[Iterable[OutgoingRecord]], None]
"""Writes records, and returns when all are acknowledged.

Raises an error if any record was possibly not written.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTerms:
    """Represents the store and the topics of the job, for executors.

    `is_itemized` is True if each dead letter gets a row; otherwise, each outcome gets one.
    """

    store: StoreConnection
    topics: OutcomeTopics
    is_itemized: bool


def carry_out(
    batches: Iterable[pa.RecordBatch],
    terms: RepairTerms,
    decisions: BatchDecisions,
    clock: Clock,
    write: WriteRecords,
) -> Iterator[pa.RecordBatch]:
    """Carry out the decisions on dead letters with DEAD_LETTER_COLUMNS; yield OUTCOMES.

    Yields after all written records are acknowledged.
    """
    counts: Counter[str] = Counter()
    items: list[Outcome] = []
    with (
        closing(terms.store.open_chunks()) as storage,
        _rare_collection(),
        ThreadPoolExecutor(_PARTS_AT_ONCE) as pool,
    ):
        act = partial(
            _carry_out_part, storage=storage, terms=terms, decisions=decisions, clock=clock
        )

        def records() -> Iterator[OutgoingRecord]:
            for outcome in _in_order(pool, act, _parts(batches)):
                counts[outcome.name] += 1
                if terms.is_itemized:
                    items.append(outcome)
                if outcome.record is not None:
                    yield outcome.record

        write(records())
    rows = [
        (each.name, 1, each.dead_letter and subject_of(each.dead_letter), each.reason or None)
        for each in items
    ]
    yield _outcomes(rows or [(name, count, None, None) for name, count in counts.items()])


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Make the garbage collector run rarely, and skip all existing objects.

    Hundreds of thousands of objects are permanent; most belong to the store's client. Dead letters
    are short-lived and never form cycles.
    """
    threshold = gc.get_threshold()[0]
    gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    try:
        yield
    finally:
        gc.set_threshold(threshold)
        gc.unfreeze()


def rehearse(
    batches: Iterable[pa.RecordBatch], decisions: BatchDecisions
) -> Iterator[pa.RecordBatch]:
    """Yield the OUTCOMES that the dead letters would have if no removal failed or was refused."""
    counts: Counter[str] = Counter()
    for part in _parts(batches):
        for each in _received(part):
            counts[
                expected_outcome(each.dead_letter, partial(decisions.decision, each.location))
            ] += 1
    yield _outcomes([(name, count, None, None) for name, count in counts.items()])


def _outcomes(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(OUTCOMES)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, OUTCOMES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=OUTCOMES)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, _DEAD_LETTERS_AT_ONCE):
            yield batch.slice(start, _DEAD_LETTERS_AT_ONCE)


def _in_order(
    pool: ThreadPoolExecutor,
    act: Callable[[pa.RecordBatch], list[Outcome]],
    parts: Iterable[pa.RecordBatch],
) -> Iterator[Outcome]:
    """Yield the outcomes of all parts in order; limit the number of parts that run or wait."""
    running: deque[Future[list[Outcome]]] = deque()
    for part in parts:
        running.append(pool.submit(act, part))
        if len(running) > _PARTS_AT_ONCE:
            yield from running.popleft().result()
    for each in running:
        yield from each.result()


def _carry_out_part(
    part: pa.RecordBatch,
    storage: ChunkStorage,
    terms: RepairTerms,
    decisions: BatchDecisions,
    clock: Clock,
) -> list[Outcome]:
    received = list(_received(part))
    decided: dict[DeadLetterLocation, tuple[AnyDeadLetter, Decision]] = {
        each.location: (each.dead_letter, decisions.decision(each.location, each.dead_letter))
        for each in received
        if not isinstance(each.dead_letter, UnreadableDeadLetter)
    }
    removals = remove(storage, decided, terms.store.keys)
    now_ms = clock.wall_ms()
    return [
        unreadable(each, each.dead_letter, terms.topics)
        if isinstance(each.dead_letter, UnreadableDeadLetter)
        else outcome_of(
            each, *decided[each.location], removals.get(each.location), terms.topics, now_ms
        )
        for each in received
    ]


def _received(part: pa.RecordBatch) -> Iterator[ReceivedDeadLetter]:
    """Yield the dead letters; skip records that have no value."""
    # Reads by columns: a dictionary per row takes longer than decoding the dead letters.
    columns = [part.column(name).to_pylist() for name in DEAD_LETTER_COLUMNS]
    for partition, offset, key, value in zip(*columns, strict=True):
        if value is not None:
            dead_letter = read_dead_letter(key, value)
            yield ReceivedDeadLetter(
                location=(partition, offset), key=key, value=value, dead_letter=dead_letter
            )
