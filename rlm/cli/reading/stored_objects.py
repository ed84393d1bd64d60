"""Checks the objects of the finished segments that contain an offset, for `rlm explain`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

import typer

from rlm.cli.invocation.session import CommandSession
from rlm.policy.anomalies import open_anomalies
from rlm.status.document_parts import Json, anomaly_to_json
from rlm.tasks.context.attempt import BoundedAttempt
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rlmm.state.anomalies import Anomaly
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.spi import CopyAttempt, RemoteStorageManager

AS_RECORDED, MISSING = "as recorded", "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObjects:
    """Represents the recorded anomalies of segments, and the states of their objects by key.

    `states` is None if no store is configured, or if the store does not respond.
    """

    anomalies: tuple[Anomaly, ...] = ()
    states: Mapping[str, str] | None = None

    def to_json(self) -> Json:
        return {
            "anomalies": [anomaly_to_json(each) for each in self.anomalies],
            "objects_in_store": self.states,
        }


def stored_objects(session: CommandSession, tip: TopicIdPartition, offset: int) -> StoredObjects:
    """Return the anomalies and objects of the finished segments that contain an offset."""
    records = session.metadata.list_remote_log_segments(
        tip, states=(SegmentState.COPY_SEGMENT_FINISHED,), from_offset=offset
    )
    holding = [each.metadata for each in records if offset in each.metadata.offsets]
    anomalies = open_anomalies(session.metadata.partition_state(tip), holding)
    return StoredObjects(anomalies=anomalies, states=_asked(session, holding))


def states_of(
    storage: RemoteStorageManager,
    segments: Iterable[RemoteLogSegmentMetadata],
    attempt: CopyAttempt,
) -> Mapping[str, str]:
    """Compare each stored object with its recorded length and checksum; return states by key."""
    states: dict[str, str] = {}
    for metadata in segments:
        states.update((stored.key, AS_RECORDED) for stored in metadata.objects)
        for fault in storage.check_objects(metadata, read=False, attempt=attempt):
            states[fault.object_key] = MISSING if fault.is_missing else f"corrupt: {fault.reason}"
    return states


def _asked(
    session: CommandSession, segments: Iterable[RemoteLogSegmentMetadata]
) -> Mapping[str, str] | None:
    settings = session.config.storage
    if settings is None:
        return None
    attempt = BoundedAttempt(session.clock, session.deadline_ms, lambda: False)
    with closing(open_storage_manager(settings, open_chunk_storage(settings))) as storage:
        try:
            return states_of(storage, segments, attempt)
        except RetriableError as error:
            typer.echo(f"rlm: cannot check the objects in the store: {error}", err=True)
            return None
