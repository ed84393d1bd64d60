"""`rlm topic resolve`: accepts the losses of a topic's partitions, to unblock the managers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, NamedTuple
from uuid import uuid4

import typer

from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    ClusterOptions,
    JsonOption,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.topics.damaged_segments import (
    DAMAGED_SEGMENT,
    DamagedSegment,
    damage_as_json,
    damage_lines,
    damaged_segments,
)
from rlm.cli.topics.lost_segment import named_segments, resolve_lost_segments
from rlm.policy.losses import Losses, losses
from rlmm.events.log_start import LogStartRequested
from rlmm.events.loss import LossAccepted
from rlmm.spi import RemoteLogMetadataManager
from rsm.program.confirmation import confirm
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition

_NO_EPOCH = -1
_EXAMPLE = "Example: rlm topic resolve orders:0 --dry-run --config rlm.properties"

_CUT_OFF = JsonShape(
    name="CutOff",
    meaning="Stored segments that an election cut off wholly or in part.",
    fields={
        "leader_epoch": JsonField(JsonKind.COUNT, "The newest leader epoch in these segments."),
        "start_offset": JsonField(JsonKind.OFFSET, "The first offset that the log lacks."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after the last segment."),
        "segment_count": JsonField(JsonKind.COUNT, "Number of segments."),
    },
)
PARTITION_LOSSES = JsonShape(
    name="PartitionLosses",
    meaning="A partition that has lost records or has a damaged segment.",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic's name."),
        "partition": JsonField(JsonKind.COUNT, "The partition's number."),
        "cut_off": JsonField(
            _CUT_OFF, "Segments that an election cut off; null if none.", is_nullable=True
        ),
        "moved_from_offset": JsonField(
            JsonKind.OFFSET,
            "The last local log start that `rlm` set; null unless another program moved it since.",
            is_nullable=True,
        ),
        "local_start_offset": JsonField(JsonKind.OFFSET, "First offset of the broker's log."),
        "accepted": JsonField(JsonKind.FLAG, "Whether the command accepted the losses."),
        "damaged_segments": JsonField(
            DAMAGED_SEGMENT,
            "Damaged segments. `accepted` does not include their loss.",
            is_list=True,
        ),
    },
)

_Name = Annotated[
    str, typer.Argument(metavar="NAME[:PARTITION]", help="The topic, or one partition of it.")
]


def add_to(topic: typer.Typer) -> None:
    """Add the command."""
    topic.command("resolve", help=_resolve.__doc__, epilog=_EXAMPLE)(_resolve)


@with_cluster_options
@deletes()
def _resolve(
    name: _Name,
    *,
    move_log_start: Annotated[
        bool,
        typer.Option(
            "--move-log-start",
            help="**Data loss:** if another program moved a broker's log start, begin the log "
            "there and delete stored data below it. By default, that data stays readable.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the losses; accept nothing.")
    ] = False,
    lost_segment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="**Data loss:** give up the damaged segment ID of TOPIC:PARTITION. Its records "
            "become a recorded gap, and readers continue after it. The command fails while the "
            "broker has any of the records, or if other segments have all of them. Repeat the "
            "option for more segments: the command gives up all of them, or none.",
        ),
    ] = None,
    as_json: JsonOption = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """Accept the losses of partitions, so that managers continue.

    **Data loss:** after remote.unreferenced.grace.ms, managers delete segments that an election cut
    off.

    Accepts the losses that `rlm status` reports as `diverged` or `external_start`. Trims and
    deletions then resume. Look at the losses with --dry-run first. The command only lists damaged
    segments, each with the command that gives it up. With --lost-segment, it gives up only that
    segment.
    """
    named = PartitionName.parse(name)
    if lost_segment and move_log_start:
        raise InvalidConfigError(
            "--lost-segment and --move-log-start exclude each other", advice="Give one"
        )
    lost_ids = named_segments(named, lost_segment) if lost_segment else ()
    if lost_ids:
        resolve_lost_segments(named, lost_ids, cluster, dry_run=dry_run, as_json=as_json, yes=yes)
        return
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        _, partitions = find_tiered(session, named)
        found = tuple(_found(session, partitions, with_accepted_start=move_log_start))
        left = [] if dry_run else [each for each in found if each.lost.has_losses]
        if left:
            confirm(_question(left, move_log_start=move_log_start), yes=yes)
        for each in left:
            _accept(session.metadata, each, move_log_start=move_log_start)
    with printing():
        typer.echo(resolved_text(found, accepted=not dry_run, as_json=as_json))


class PartitionLosses(NamedTuple):
    """Represents a partition's losses, as its leader in `leader_epoch` reported them.

    `damaged` are segments with an open anomaly. The command does not accept their loss.
    """

    topic_id_partition: TopicIdPartition
    lost: Losses
    leader_epoch: int
    damaged: tuple[DamagedSegment, ...] = ()


def _question(left: Sequence[PartitionLosses], *, move_log_start: bool) -> str:
    lines = [line for each in left for line in _lines(each._replace(damaged=()))]
    also = ", and delete stored data below the moved log start" if move_log_start else ""
    return "\n".join([*lines, f"Accept these losses (partitions: {len(left)}){also}?"])


def resolved_text(found: Sequence[PartitionLosses], *, accepted: bool, as_json: bool) -> str:
    """Return the losses, and the damaged segments with the commands that give them up."""
    if as_json:
        return json.dumps([_as_json(each, accepted=accepted) for each in found])
    lines = [line for each in found for line in _lines(each)]
    return "\n".join(lines) or "nothing to resolve"


def _found(
    session: CommandSession, partitions: tuple[TopicIdPartition, ...], *, with_accepted_start: bool
) -> Iterator[PartitionLosses]:
    with reaching_cluster(session.config):
        view = session.bootstrap.view((partitions[0].topic,))
    answers = fetch_cluster_offsets(session.bootstrap, view, partitions)
    for error in answers.failed.values():
        raise RetriableError(
            "cannot fetch the offsets of all partitions",
            reason=error,
            advice="Run the command again when all leaders answer",
        ) from error
    epochs = {tip: epoch for node_id in view.brokers for tip, epoch in view.led_by(node_id).items()}
    for tip in partitions:
        records = session.metadata.list_remote_log_segments(tip)
        segments = tuple(record.metadata for record in records)
        state = session.metadata.partition_state(tip)
        lost = losses(
            state,
            segments,
            answers.succeeded[tip].log_start_offset,
            with_accepted_start=with_accepted_start,
        )
        damaged = damaged_segments(state, segments)
        if lost.has_losses or damaged:
            yield PartitionLosses(tip, lost, epochs[tip], damaged)


def _accept(
    metadata: RemoteLogMetadataManager, found: PartitionLosses, *, move_log_start: bool
) -> None:
    tip, lost, leader_epoch, _ = found
    moved = lost.moved_from_offset is not None
    start_offset = lost.local_start_offset if moved else 0
    metadata.publish(
        LossAccepted(
            event_id=uuid4(),
            topic_id_partition=tip,
            leader_epoch=_NO_EPOCH if lost.cut_off is None else lost.cut_off.leader_epoch,
            local_start_offset=start_offset,
        )
    )
    if moved and move_log_start:
        metadata.publish(
            LogStartRequested(
                event_id=uuid4(),
                topic_id_partition=tip,
                offset=start_offset,
                leader_epoch=leader_epoch,
            )
        )


def _as_json(found: PartitionLosses, *, accepted: bool) -> Mapping[str, object]:
    tip, lost, _, damaged = found
    return {
        "topic": tip.topic,
        "partition": tip.partition,
        "cut_off": None if lost.cut_off is None else asdict(lost.cut_off),
        "moved_from_offset": lost.moved_from_offset,
        "local_start_offset": lost.local_start_offset,
        "accepted": accepted and lost.has_losses,
        "damaged_segments": [damage_as_json(each) for each in damaged],
    }


def _lines(found: PartitionLosses) -> Iterator[str]:
    tip, lost, _, damaged = found
    label = f"{tip.topic}:{tip.partition}"
    cut = lost.cut_off
    if cut is not None:
        yield (
            f"{label} diverged: an election cut off offsets"
            f" {cut.start_offset}..{cut.end_offset - 1} of leader epochs up to {cut.leader_epoch}"
            f" (stored segments: {cut.segment_count})"
        )
    if lost.moved_from_offset is not None:
        yield (
            f"{label} external start: the broker's log begins at {lost.local_start_offset}, but"
            f" rlm moved its start only to {lost.moved_from_offset}"
        )
    for each in damaged:
        yield from damage_lines(each)
