"""`rlm explain`: shows where a record is, and why it is or is not on the broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Annotated

import typer

from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.cli.invocation.amounts import iso_time, size_text
from rlm.cli.invocation.log_bounds import PartitionName, require_offset
from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.managers import live_managers, silence_of
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.reading.stored_objects import StoredObjects, stored_objects
from rlm.cli.terminal.lines import print_lines
from rlm.rest.manager_client import ManagerClient
from rlm.status.document_parts import ANOMALY, PARTITION, Json
from rlm.status.explanation import (
    OFFSET_EXPLANATION,
    LocalCopy,
    OffsetExplanation,
    offset_location,
)
from rlmm.events.registration import ProcessRegistered
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.metadata import SegmentState

EXPLAIN_DOCUMENT = JsonShape(
    name="Explanation",
    meaning="Where a record is, with the state of its stored objects.",
    fields={
        **PARTITION,
        **OFFSET_EXPLANATION.fields,
        "anomalies": JsonField(ANOMALY, "Damaged stored objects.", is_list=True),
        "objects_in_store": JsonField(
            JsonKind.MAP,
            "The state of each object by its key: `as recorded`, `missing`, or `corrupt:` with the "
            "reason; null if no store is configured, or if it does not respond.",
            is_nullable=True,
        ),
    },
)

_LOCATIONS = {
    "local": "on the broker, not stored",
    "remote": "stored, no longer on the broker",
    "both": "stored, and still on the broker",
    "below_log_start": "below the log start: expired, or deleted by a client",
    "above_high_watermark": "at or above the high watermark: not committed",
    "gap": "in a recorded gap: neither stored nor on the broker",
    "nowhere": "nowhere: neither stored nor on the broker, and in no recorded gap",
}

_Partition = Annotated[str, typer.Argument(metavar="TOPIC:PARTITION", help="The partition.")]
_Offset = Annotated[
    int,
    typer.Argument(min=0, metavar="OFFSET", help="The record's offset.", callback=require_offset),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", epilog="Example: rlm explain orders:0 120000 --json")(_explain)


@with_cluster_options
def _explain(
    partition: _Partition,
    offset: _Offset,
    *,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Show where a record is, and what keeps its local copy.

    Also shows the record's segments and objects. Only the leader's manager knows what keeps the
    local copy. If that manager does not respond, the command shows the rest.
    """
    name = PartitionName.parse(partition)
    if name.partition is None:
        raise InvalidConfigError(
            "cannot explain the offset: the command needs one partition",
            found=partition,
            expected="TOPIC:PARTITION",
        )
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        _, (tip,) = find_tiered(session, name)
        found = _explanation(session, tip, offset)
        stored = stored_objects(session, tip, offset)
    with printing():
        if as_json:
            typer.echo(json.dumps(explanation_json(tip, found, stored), indent=2))
        else:
            print_lines(explanation_lines(tip, found, stored))


def explanation_json(
    tip: TopicIdPartition, found: OffsetExplanation, stored: StoredObjects
) -> Json:
    """Return the document of --json."""
    return {
        "topic": tip.topic,
        "topic_id": id_to_text(tip.topic_id),
        "partition": tip.partition,
        **found.to_json(),
        **stored.to_json(),
    }


def _explanation(session: CommandSession, tip: TopicIdPartition, offset: int) -> OffsetExplanation:
    """Return the manager's explanation; if it gives none, one from metadata and leader offsets."""
    with reaching_cluster(session.config):
        view = session.bootstrap.view((tip.topic,))
    leaders = {each.partition: each.leader_id for each in view.topic(tip.topic).partitions}
    managers = live_managers(session.metadata, session.clock)
    with closing(manager_client(session)) as client:
        explained = explained_by_leader(client, managers, leaders.get(tip.partition), tip, offset)
    if not isinstance(explained, str):
        return explained
    typer.echo(f"rlm: cannot find out what keeps the local copy: {explained}", err=True)
    answers = fetch_cluster_offsets(session.bootstrap, view, (tip,))
    if tip not in answers.succeeded:
        raise RetriableError(
            "cannot fetch the offsets from the leader",
            topic_partition=tip,
            reason=answers.failed.get(tip),
            advice="Run the command again when the leader answers",
        )
    state = session.metadata.partition_state(tip)
    segments = session.metadata.list_remote_log_segments(tip, states=tuple(SegmentState))
    return offset_location(
        offset,
        state=state,
        lineage=state.lineage,
        offsets=answers.succeeded[tip],
        segments=tuple(segments),
    )


def explained_by_leader(
    client: ManagerClient,
    managers: Iterable[ProcessRegistered],
    leader: int | None,
    tip: TopicIdPartition,
    offset: int,
) -> OffsetExplanation | str:
    """Return the response of the leader's manager; the reason as text if there is none.

    `managers` are the live managers.
    """
    live = {manager.broker_id: manager for manager in managers}
    errors = {}
    if leader in live:
        try:
            return client.explanation(live[leader], tip.topic, tip.partition, offset)
        except TieredStorageError as error:
            errors[leader] = error
    return silence_of(leader, live, errors)


def explanation_lines(
    tip: TopicIdPartition, found: OffsetExplanation, stored: StoredObjects
) -> Sequence[str]:
    """Return the lines that the command prints for people."""
    epoch = "not known" if found.leader_epoch is None else found.leader_epoch
    starts = f"log start {found.log_start_offset}, local start {found.local_start_offset}"
    lines = [
        f"{tip.topic}:{tip.partition} offset {found.offset}",
        f"  {_LOCATIONS.get(found.location, found.location)}",
        f"  {starts}, high watermark {found.high_watermark}, leader epoch {epoch}",
    ]
    states = stored.states or {}
    for segment in found.segments:
        lines.append(f"  segment {id_to_text(segment.segment_id)} {segment.offsets}")
        lines.append(
            f"    {size_text(segment.size_bytes)}, {segment.state} since"
            f" {iso_time(segment.state_since_ms)}"
            f"{', not readable' if segment.readable is None else ''}"
        )
        for key in segment.object_keys:
            lines.append(f"    {key}")
            lines.extend([f"      in the store: {states[key]}"] if key in states else [])
    for each in stored.anomalies:
        lines.append(
            f"  anomaly {each.kind.label} since {iso_time(each.first_ms)},"
            f" last {iso_time(each.last_ms)}, attempts: {each.attempts}"
        )
        lines.append(f"    {each.object_key}")
    if found.gap is not None:
        gap = found.gap
        lines.append(
            f"  gap {gap.offsets} {gap.reason.name.lower()}, recorded {iso_time(gap.recorded_ms)}"
        )
    return [*lines, f"  local copy: {_local_copy_text(found.local_copy)}"]


def _local_copy_text(copy: LocalCopy | None) -> str:
    if copy is None:
        return "not known: the leader's manager gave no explanation"
    values = " ".join(f"{name}={value}" for name, value in copy.values.items())
    return " ".join(each for each in (copy.state, copy.reason, values) if each)
