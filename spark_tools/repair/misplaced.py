"""Finds records that are not valid dead letters of their keys. They supersede no other records.

Runs on executors, for keys that several records of a batch share. This module does not import
Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.record_keys import segment_subject
from spark_tools.repair.batch_decisions import BatchDecisions, DeadLetterLocation
from spark_tools.repair.dead_letters import read_dead_letter
from spark_tools.repair.proof import RepairAction

LOCATIONS = pa.schema([pa.field("partition", pa.int32()), pa.field("offset", pa.int64())])
LOCATIONS_DDL = "partition int, offset long"


def find_misplaced(
    batches: Iterable[pa.RecordBatch], decisions: BatchDecisions, keys: Collection[bytes]
) -> Iterator[pa.RecordBatch]:
    """Yield the LOCATIONS of invalid records among those that have one of `keys`."""
    names = ("partition", "offset", "key", "value")
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in names]
        found = [
            {"partition": partition, "offset": offset}
            for partition, offset, key, value in zip(*columns, strict=True)
            if key in keys and not _is_in_order((partition, offset), key, value, decisions)
        ]
        yield pa.RecordBatch.from_pylist(found, schema=LOCATIONS)


def _is_in_order(
    location: DeadLetterLocation, key: bytes, value: bytes, decisions: BatchDecisions
) -> bool:
    """Return whether the record is a dead letter of its key's segment that need not be refused."""
    dead_letter = read_dead_letter(key, value)
    return (
        isinstance(dead_letter, DeadLetter)
        and segment_subject(dead_letter.metadata.segment_id) == key
        and decisions.decision(location, dead_letter).action is not RepairAction.REFUSE
    )
