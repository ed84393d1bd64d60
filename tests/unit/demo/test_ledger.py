from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.failure import DemoFailedError
from demo.ledger import LoggedRecord, RecordLedger

RECORDS = tuple(
    LoggedRecord(
        partition=0,
        offset=offset,
        timestamp_ms=1_000 + offset,
        key=b"key",
        value=b"value",
        headers=(("name", b"1"),),
    )
    for offset in range(4)
)

_BYTES = st.none() | st.binary(max_size=4)
_SEEN = st.builds(
    LoggedRecord,
    partition=st.integers(0, 1),
    offset=st.integers(0, 2),
    timestamp_ms=st.integers(-1, 1),
    key=_BYTES,
    value=_BYTES,
    headers=st.lists(st.tuples(st.text(max_size=2), _BYTES), max_size=2).map(tuple),
)


def ledger_of(records: Sequence[LoggedRecord]) -> RecordLedger:
    ledger = RecordLedger(partitions=1)
    for record in records:
        ledger.enter(record)
    return ledger


def test_compare_when_the_same_is_read_then_digest_of_what_was_produced() -> None:
    ledger = ledger_of(RECORDS[::-1])  # acknowledged in any order

    assert ledger.compare(0, RECORDS) == ledger.digest(0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda read: [read[0], *read[2:]], "read offset 2, expected offset 1"),
        (lambda read: [read[0], *read], "read offset 0, expected offset 1"),
        (lambda read: [read[1], read[0], *read[2:]], "read offset 1, expected offset 0"),
        (lambda read: read[:-1], "ended before offset 3"),
        (lambda read: [*read, replace(read[-1], offset=4)], "read offset 4, expected no record"),
        (lambda read: [replace(read[0], timestamp_ms=7), *read[1:]], "offset 0 is not as produced"),
        (lambda read: [replace(read[0], key=None), *read[1:]], "offset 0 is not as produced"),
        (lambda read: [replace(read[0], value=b""), *read[1:]], "offset 0 is not as produced"),
        (lambda read: [replace(read[0], headers=()), *read[1:]], "offset 0 is not as produced"),
    ],
)
def test_compare_when_anything_differs_then_names_it(
    change: Callable[[list[LoggedRecord]], list[LoggedRecord]], message: str
) -> None:
    with pytest.raises(DemoFailedError, match=message):
        ledger_of(RECORDS).compare(0, change(list(RECORDS)))


def test_enter_when_an_offset_is_given_twice_then_fails() -> None:
    with pytest.raises(DemoFailedError, match="two records have offset 2"):
        ledger_of(RECORDS).enter(RECORDS[2])


@given(first=_SEEN, second=_SEEN)
def test_fingerprints_when_records_differ_then_differ(
    first: LoggedRecord, second: LoggedRecord
) -> None:
    assert (first.fingerprint() == second.fingerprint()) == (first == second)
