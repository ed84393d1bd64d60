"""`rlm topic resolve TOPIC:P --lost-segment ID`: gives up the records of a damaged segment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from uuid import UUID, uuid4

import typer

from rlm.cli.invocation.amounts import counted
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import ClusterOptions
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import local_starts_of, open_session
from rlm.operator.loss_acceptance import AcceptableLoss, LossAcceptance
from rlm.status.document_parts import OFFSET_RANGE
from rlm.tasks.context.attempt import BoundedAttempt
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rsm.program.confirmation import confirm
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId, id_from_text, id_to_text

LOST_SEGMENT = JsonShape(
    name="LostSegment",
    meaning="A damaged segment, and the records that the command gives up.",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic's name."),
        "partition": JsonField(JsonKind.COUNT, "The partition's number."),
        "segment_id": JsonField(JsonKind.ID, "The segment's id."),
        "lost": JsonField(
            OFFSET_RANGE,
            "Offsets that are not on the leader's broker, and in no other undamaged segment.",
            is_list=True,
        ),
        "later_ranges": JsonField(
            JsonKind.COUNT, "Number of further lost ranges; the command does not give them up now."
        ),
        "objects": JsonField(
            JsonShape(
                name="FaultyObject",
                meaning="An object that cannot be read as it was stored.",
                fields={
                    "object": JsonField(JsonKind.TEXT, "Its key in the store."),
                    "kind": JsonField(JsonKind.TEXT, "`missing` or `corrupt`."),
                    "reason": JsonField(JsonKind.TEXT, "What the store or the check reports."),
                },
            ),
            "Its damaged objects.",
            is_list=True,
        ),
        "accepted": JsonField(JsonKind.FLAG, "Whether the command accepted the loss."),
    },
)


def named_segments(name: PartitionName, segments: Iterable[str]) -> tuple[UUID, ...]:
    """Return the ids of segments that the user gave, each once.

    Raises InvalidConfigError if `name` is a whole topic, or if a text is not an id.
    """
    if name.partition is None:
        raise InvalidConfigError(
            "--lost-segment needs one partition",
            found=name.topic,
            expected="TOPIC:PARTITION",
        )
    found = []
    for text in segments:
        try:
            found.append(id_from_text(text))
        except InvalidConfigError as error:
            raise InvalidConfigError(
                "the segment's id is invalid: the text is not an id",
                found=text,
                advice=f"`rlm topic resolve {name.topic}:{name.partition} --dry-run` lists "
                "damaged segments",
            ) from error
    return tuple(dict.fromkeys(found))


def resolve_lost_segments(
    name: PartitionName,
    ids: Iterable[UUID],
    cluster: ClusterOptions,
    *,
    dry_run: bool,
    as_json: bool,
    yes: bool,
) -> None:
    """Accept the losses; only show them if `dry_run`.

    Raises the errors of `LossAcceptance.examine` before it accepts any loss, and those of `accept`.
    """
    with (
        open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session,
        ExitStack() as opened,
    ):
        _, (tip,) = find_tiered(session, name)
        settings = session.config.storage
        storage = None
        if settings is not None:
            storage = opened.enter_context(
                closing(open_storage_manager(settings, open_chunk_storage(settings)))
            )
        acceptance = LossAcceptance(session.metadata, storage, session.clock, uuid4)
        local_start_offset = local_starts_of(session, tip.topic, (tip,))[tip]
        attempt = BoundedAttempt(session.clock, session.deadline_ms, lambda: False)
        losses = [
            acceptance.examine(
                RemoteLogSegmentId(topic_id_partition=tip, id=each), local_start_offset, attempt
            )
            for each in ids
        ]
        if not dry_run:
            confirm(_question(losses), yes=yes)
            for loss in losses:
                acceptance.accept(loss)
    with printing():
        typer.echo(losses_text(losses, accepted=not dry_run, as_json=as_json))


def _question(losses: Sequence[AcceptableLoss]) -> str:
    tip = losses[0].segment_id.topic_id_partition
    count = sum(len(each) for loss in losses for each in loss.lost)
    offsets = counted(count, "offset")
    segments = counted(len(losses), "damaged segment")
    return f"Give up {offsets} in {segments} of {tip.topic}:{tip.partition}?"


def losses_text(losses: Sequence[AcceptableLoss], *, accepted: bool, as_json: bool) -> str:
    """Return the output; in JSON, one object for one segment, a list for several."""
    if not as_json:
        return "\n".join(line for each in losses for line in loss_lines(each, accepted=accepted))
    documents = [loss_as_json(each, accepted=accepted) for each in losses]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2)


def loss_lines(loss: AcceptableLoss, *, accepted: bool) -> Iterator[str]:
    """Yield the lost offsets, the damaged objects and what happens next."""
    tip = loss.segment_id.topic_id_partition
    label = f"{tip.topic}:{tip.partition}"
    for offsets in loss.lost:
        count = len(offsets)
        yield (
            f"{label} lost segment {id_to_text(loss.segment_id.id)}: offsets"
            f" {offsets.start_offset}..{offsets.last_offset}"
            f" ({counted(count, 'offset')}) are not on the leader's broker, and in"
            " no other undamaged segment"
        )
    if loss.later_count:
        yield (
            f"{label} segment {id_to_text(loss.segment_id.id)}: more lost ranges of offsets:"
            f" {loss.later_count}; they are not given up now. Run the command again when"
            " `rlm explain` shows the gap"
        )
    for fault in loss.faults.values():
        kind = "missing" if fault.is_missing else f"corrupt ({fault.reason})"
        yield f"  object {fault.object_key}: {kind}"
    yield (
        "accepted: the leader's manager records the gap, then readers continue after it"
        if accepted
        else "nothing was changed: without --dry-run, the command accepts the loss"
    )


def loss_as_json(loss: AcceptableLoss, *, accepted: bool) -> Mapping[str, object]:
    """Return the loss as a LostSegment document."""
    tip = loss.segment_id.topic_id_partition
    return {
        "topic": tip.topic,
        "partition": tip.partition,
        "segment_id": id_to_text(loss.segment_id.id),
        "lost": [
            {"start_offset": each.start_offset, "end_offset": each.end_offset} for each in loss.lost
        ],
        "later_ranges": loss.later_count,
        "objects": [
            {
                "object": each.object_key,
                "kind": "missing" if each.is_missing else "corrupt",
                "reason": each.reason,
            }
            for each in loss.faults.values()
        ],
        "accepted": accepted,
    }
