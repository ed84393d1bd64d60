from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlmm.cache.ordered_store import OrderedStore, Table
from tests.contract.metadata_caches import STORES

SEGMENTS, CLUSTER = Table.SEGMENTS, Table.CLUSTER
KEYS = st.binary(max_size=3)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OrderedStore]:
    store = STORES[request.param](tmp_path)
    yield store
    store.close()


def put(store: OrderedStore, rows: dict[bytes, bytes | None], table: Table = SEGMENTS) -> None:
    batch = store.batch()
    for key, value in rows.items():
        if value is None:
            batch.delete(table, key)
        else:
            batch.put(table, key, value)
    store.write(batch)


def test_value_when_written_then_is_read_in_its_table_only(store: OrderedStore) -> None:
    put(store, {b"k": b"v"})

    assert (store.get(SEGMENTS, b"k"), store.get(CLUSTER, b"k")) == (b"v", None)


def test_value_when_empty_then_is_not_absent(store: OrderedStore) -> None:
    put(store, {b"k": b""})

    assert store.get(SEGMENTS, b"k") == b""


def test_batch_when_it_changes_a_key_twice_then_the_last_holds(store: OrderedStore) -> None:
    batch = store.batch()
    batch.put(SEGMENTS, b"a", b"1")
    batch.delete(SEGMENTS, b"a")
    batch.delete(SEGMENTS, b"b")
    batch.put(SEGMENTS, b"b", b"2")

    store.write(batch)

    assert (store.get(SEGMENTS, b"a"), store.get(SEGMENTS, b"b")) == (None, b"2")


def test_tables_when_cleared_then_only_what_came_after_is_left(store: OrderedStore) -> None:
    put(store, {b"old": b"1", b"\xff" * 40: b"1"})
    batch = store.batch()
    batch.put(SEGMENTS, b"before", b"1")
    batch.clear_tables()
    batch.put(SEGMENTS, b"new", b"2")

    store.write(batch)

    with store.read(SEGMENTS) as reader:
        assert list(reader.ascending(SEGMENTS, b"", b"\xff" * 64)) == [(b"new", b"2")]


def test_range_when_deleted_then_only_its_keys_of_its_table_go(store: OrderedStore) -> None:
    put(store, {b"a": b"1", b"b": b"1", b"bb": b"1", b"c": b"1"})
    put(store, {b"b": b"1"}, CLUSTER)
    batch = store.batch()
    batch.delete_range(SEGMENTS, b"b", b"c")
    batch.put(SEGMENTS, b"d", b"2")

    store.write(batch)

    with store.read(SEGMENTS) as reader:
        left = [key for key, _ in reader.ascending(SEGMENTS, b"", b"z")]
    assert left == [b"a", b"c", b"d"]
    assert store.get(CLUSTER, b"b") == b"1"


def test_size_when_rows_were_written_then_counts_them(store: OrderedStore) -> None:
    put(store, {b"a": b"1", b"b": b"1"})

    assert store.size().entry_counts[SEGMENTS] == 2
    assert store.size().entry_counts[CLUSTER] == 0


def test_view_when_missing_keys_are_asked_then_answers_none(store: OrderedStore) -> None:
    put(store, {b"b": b"1"})

    with store.read(SEGMENTS) as reader:
        assert [reader.get(SEGMENTS, key) for key in (b"a", b"b", b"c")] == [None, b"1", None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, st.none() | st.binary(max_size=2), max_size=20), KEYS, KEYS)
def test_range_when_walked_either_way_then_is_in_key_order(
    store: OrderedStore, rows: dict[bytes, bytes | None], start: bytes, end: bytes
) -> None:
    batch = store.batch()
    batch.clear_tables()
    store.write(batch)
    put(store, rows)

    with store.read(SEGMENTS) as reader:
        ascending = list(reader.ascending(SEGMENTS, start, end))
        descending = list(reader.descending(SEGMENTS, start, end))

    expected = sorted((k, v) for k, v in rows.items() if v is not None and start <= k < end)
    assert ascending == expected
    assert descending == expected[::-1]


def test_store_when_it_knows_what_comes_then_has_what_is_written_before_and_after(
    store: OrderedStore,
) -> None:
    put(store, {b"a": b"1"})

    store.set_bulk_mode(enabled=True)
    put(store, {b"b": b"2"})
    store.set_bulk_mode(enabled=False)

    assert (store.get(SEGMENTS, b"a"), store.get(SEGMENTS, b"b")) == (b"1", b"2")


def test_store_when_opened_again_then_holds_what_was_written(store: OrderedStore) -> None:
    put(store, {b"k": b"v"})

    store.reopen()

    assert (store.get(SEGMENTS, b"k"), store.failure()) == (b"v", "")


def test_store_when_set_aside_then_is_empty_and_takes_new_rows(store: OrderedStore) -> None:
    put(store, {b"old": b"1"})

    store.set_aside("/+" * 11)

    put(store, {b"new": b"2"})
    with store.read(SEGMENTS) as reader:
        assert list(reader.ascending(SEGMENTS, b"", b"\xff" * 64)) == [(b"new", b"2")]


def test_store_when_closed_twice_then_nothing_happens(store: OrderedStore) -> None:
    store.close()
    store.close()
