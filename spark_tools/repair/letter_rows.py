"""Letters as Arrow rows: read, carried out, and what comes of each as records for Kafka.

Runs on executors, a batch of rows at a time. Must not know Spark. Stores take their time for each
request: some parts of a batch are under way at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import pyarrow as pa

from rlmm.codec import encode as encode_event
from rlmm.dead_letter import DeadLetter
from rlmm.events import SegmentEvent
from rlmm.orphan_letter import OrphanLetter
from rlmm.partitioner import event_partition
from rsm.layout.keys import ObjectKeys
from rsm.segment.clock import Clock
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.metadata import SegmentState
from rsm.storage.chunk_storage import ChunkStorage
from spark_tools.connection import StoreConnection
from spark_tools.repair.deletion import delete_segments
from spark_tools.repair.letters import Letter, read_letter, subject_of, write_letter
from spark_tools.repair.orphan_removal import Removal, remove_orphans
from spark_tools.repair.proof import Judgement, Verdict

_LETTERS_AT_ONCE = 1000
_PARTS_AT_ONCE = 4

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
OUTCOMES = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER))),
        pa.field("outcome", pa.string()),
        pa.field("segment", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
OUTCOMES_DDL = (
    "topic string, partition int, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>, outcome string, segment string, reason string"
)
"""The first five are a record for Kafka, unless `topic` is null."""

LetterPlace = tuple[int, int]
"""Partition and offset of a letter in its topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTerms:
    """What executors are told: where objects are, where outcomes go, when to give up."""

    store: StoreConnection
    metadata_topic: str
    metadata_partition_count: int
    letter_topic: str
    parking_topic: str
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Received:
    place: LetterPlace
    key: bytes | None
    value: bytes
    letter: Letter | None
    problem: str


def read_letters(batches: Iterable[pa.RecordBatch]) -> tuple[dict[LetterPlace, Letter], int]:
    """From the columns partition, offset, key, value to the letters, and how many can't be read.

    Records without a value are none.
    """
    readable: dict[LetterPlace, Letter] = {}
    unreadable_count = 0
    for batch in batches:
        for each in _received(batch):
            if each.letter is None:
                unreadable_count += 1
            else:
                readable[each.place] = each.letter
    return readable, unreadable_count


def carry_out(
    batches: Iterable[pa.RecordBatch],
    terms: RepairTerms,
    judgements: Mapping[LetterPlace, Judgement],
    clock: Clock,
) -> Iterator[pa.RecordBatch]:
    """From the same columns to OUTCOMES: delete what may be, and say what became of each letter."""
    with closing(terms.store.open_chunks()) as storage, ThreadPoolExecutor(_PARTS_AT_ONCE) as pool:
        act = partial(
            _carry_out_part, storage=storage, terms=terms, judgements=judgements, clock=clock
        )
        for batch in batches:
            starts = range(0, batch.num_rows, _LETTERS_AT_ONCE)
            yield from pool.map(act, [batch.slice(start, _LETTERS_AT_ONCE) for start in starts])


def _carry_out_part(
    batch: pa.RecordBatch,
    storage: ChunkStorage,
    terms: RepairTerms,
    judgements: Mapping[LetterPlace, Judgement],
    clock: Clock,
) -> pa.RecordBatch:
    received = list(_received(batch))
    doomed = [each for each in received if _may_delete(judgements.get(each.place))]
    removals = _remove(storage, doomed, terms.store.keys)
    rows = [
        _outcome(each, judgements.get(each.place), removals, terms, clock.wall_ms())
        for each in received
    ]
    return pa.RecordBatch.from_pylist(rows, schema=OUTCOMES)


def _remove(
    storage: ChunkStorage, doomed: Iterable[_Received], keys: ObjectKeys
) -> dict[LetterPlace, Removal]:
    segments: dict[LetterPlace, DeadLetter] = {}
    orphans: dict[LetterPlace, OrphanLetter] = {}
    for each in doomed:
        if isinstance(each.letter, OrphanLetter):
            orphans[each.place] = each.letter
        elif each.letter is not None:
            segments[each.place] = each.letter
    failures = delete_segments(storage, [letter.metadata for letter in segments.values()])
    removed = remove_orphans(storage, list(orphans.values()), keys)
    found = {
        place: Removal(failure=failure) for place, failure in zip(segments, failures, strict=True)
    }
    return found | dict(zip(orphans, removed, strict=True))


def _received(batch: pa.RecordBatch) -> Iterator[_Received]:
    # By columns: rows as dictionaries would take longer than reading the letters.
    columns = [batch.column(name).to_pylist() for name in ("partition", "offset", "key", "value")]
    for partition, offset, key, value in zip(*columns, strict=True):
        if value is None:
            continue
        letter, problem = None, ""
        try:
            letter = read_letter(value)
        except (CorruptError, UnsupportedError, ValueError) as error:
            problem = f"can't be read: {error}"
        yield _Received(
            place=(partition, offset), key=key, value=value, letter=letter, problem=problem
        )


def _may_delete(judgement: Judgement | None) -> bool:
    return judgement is not None and judgement.verdict in (Verdict.DELETE, Verdict.SWEEP)


def _outcome(
    received: _Received,
    judgement: Judgement | None,
    removals: Mapping[LetterPlace, Removal],
    terms: RepairTerms,
    now_ms: int,
) -> dict[str, object]:
    letter = received.letter
    if letter is None:
        return _parked(received, "unreadable", received.problem, terms)
    if judgement is None or judgement.verdict is Verdict.REFUSE:
        return _parked(received, "refused", judgement.reason if judgement else "not judged", terms)
    if judgement.verdict is Verdict.SUPERSEDED:
        return _row(letter, "superseded")
    removal = removals[received.place]
    if removal.refusal:
        return _parked(received, "refused", removal.refusal, terms)
    if removal.failure:
        return _failed(received, letter, removal.failure, terms, now_ms)
    row = _row(letter, "repaired")
    if judgement.verdict is Verdict.DELETE and isinstance(letter, DeadLetter):
        state = SegmentState.DELETE_SEGMENT_FINISHED
        event = SegmentEvent(
            event_id=uuid4(), metadata=letter.metadata.in_state(state, event_timestamp_ms=now_ms)
        )
        record = encode_event(event)
        partition = event_partition(event, terms.metadata_partition_count)
        row |= {"topic": terms.metadata_topic, "partition": partition}
        row |= {"key": record.key, "value": record.value}
    return row


def _failed(
    received: _Received, letter: Letter, failure: str, terms: RepairTerms, now_ms: int
) -> dict[str, object]:
    """Back to the letters with one attempt more, or parked after too many."""
    again = replace(letter, attempts=letter.attempts + 1, reason=failure, last_attempt_ms=now_ms)
    if again.attempts >= terms.max_attempts:
        reason = f"failed {again.attempts} times: {failure}"
        return _parked(received, "given_up", reason, terms)
    record = write_letter(again)
    row = {"topic": terms.letter_topic, "key": record.key, "value": record.value}
    return {**_row(letter, "failed", failure), **row}


def _parked(
    received: _Received, outcome: str, reason: str, terms: RepairTerms
) -> dict[str, object]:
    """The record as it was, with the reason and the place it comes from."""
    partition, offset = received.place
    headers = {"reason": reason, "from": f"{terms.letter_topic}-{partition}@{offset}"}
    return {
        **_row(received.letter, outcome, reason),
        "topic": terms.parking_topic,
        "key": received.key,
        "value": received.value,
        "headers": [{"key": name, "value": text.encode()} for name, text in headers.items()],
    }


def _row(letter: Letter | None, outcome: str, reason: str = "") -> dict[str, object]:
    subject = None if letter is None else subject_of(letter)
    return {"outcome": outcome, "segment": subject, "reason": reason or None}
