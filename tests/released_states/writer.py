"""Writes the state of this version: runs the history, keeps its files and its answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rlmm import codec
from rlmm.cache.values import SCHEMA_VERSION
from rlmm.dead_letters import dead_letter, orphan_dead_letter
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.positions import TopicRecord
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.filesystem.store_root import INCOMING
from tests.released_states.dead_letter_answers import dead_letter_answers
from tests.released_states.directories import StateDirectory
from tests.released_states.metadata_answers import (
    Json,
    interesting_points,
    metadata_answers,
)
from tests.released_states.recorded_cluster import METADATA_PARTITIONS, RecordedCluster
from tests.released_states.recorded_history import RecordedHistory
from tests.released_states.recorded_partitions import PARTITIONS
from tests.released_states.store_answers import store_answers
from tests.released_states.topic_records import write_records

_LINE_CHARACTERS = 160
# Logs and options have paths and settings of the machine. RocksDB does not need them to open a
# cache: it writes them again.
_NOT_KEPT = ("LOG", "LOG.old.*", "LOCK", "OPTIONS-*")


def write_state(directory: StateDirectory, *, version: str, scratch: Path) -> None:
    """Write the state of this version to a new directory."""
    history = RecordedHistory(scratch)
    metadata = history.happen()
    try:
        directory.path.mkdir(parents=True)
        cluster = history.cluster
        written = _dead_letters(history)
        write_records(directory.metadata_topic, _metadata_records(cluster))
        write_records(directory.dead_letter_topic, written, kinds=False)
        # The cache is copied while open, so that its newest records are in RocksDB's log.
        ignored = shutil.ignore_patterns(*_NOT_KEPT)
        shutil.copytree(cluster.cache_path, directory.cache, ignore=ignored)
        shutil.copytree(
            cluster.store_path, directory.store, ignore=shutil.ignore_patterns(INCOMING)
        )
        expected = _answers(directory, metadata, written, version)
    finally:
        metadata.close()
    directory.expected_file.write_text(_readable(expected) + "\n")


def _metadata_records(cluster: RecordedCluster) -> Iterator[TopicRecord]:
    for partition in range(METADATA_PARTITIONS):
        yield from cluster.topic.records(partition)


def _dead_letters(history: RecordedHistory) -> list[TopicRecord]:
    """Return dead letters of a failed deletion, of the same after a failed repair, of orphans."""
    (given_up,) = history.cluster.dead_letters.published
    repaired = replace(given_up, attempts=given_up.attempts + 1, repair_attempts=1)
    records = [dead_letter.encode(each) for each in (given_up, repaired)]
    records += [orphan_dead_letter.encode(each) for each in history.orphans]
    now_ms = history.cluster.clock.wall_ms()
    return [
        TopicRecord(
            partition=0,
            offset=offset,
            append_time_ms=now_ms,
            key=record.key,
            value=record.value,
            leader_epoch=0,
        )
        for offset, record in enumerate(records)
    ]


def _answers(
    directory: StateDirectory,
    metadata: TopicBasedRemoteLogMetadataManager,
    written: Sequence[TopicRecord],
    version: str,
) -> Json:
    storage = FilesystemChunkStorage(directory.store)
    points = {tip: interesting_points(metadata, tip) for tip in PARTITIONS}
    return {
        "version": version,
        "cache": {"schema_version": SCHEMA_VERSION, "fold_version": codec.FOLD_VERSION},
        "metadata": metadata_answers(metadata, points),
        "store": store_answers(storage, metadata, PARTITIONS),
        "letters": dead_letter_answers(written),
    }


def _readable(value: object, margin: str = "") -> str:
    """Return JSON with short values on one line, so that changes can be reviewed."""
    short = json.dumps(value)
    if len(margin) + len(short) <= _LINE_CHARACTERS or not isinstance(value, dict | list):
        return short
    inner = margin + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_readable(each, inner)}" for key, each in value.items()]
    else:
        items = [_readable(each, inner) for each in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(inner + item for item in items) + f"\n{margin}{end}"
