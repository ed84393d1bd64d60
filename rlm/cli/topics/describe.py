"""`rlm topic describe`: shows a topic's policy, with the origin of each effective value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from rlm.broker.topics.topic_configs import RETENTION_BYTES, RETENTION_MS
from rlm.cli.invocation.amounts import age_text, size_text
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.options import ClusterOptions, JsonOption, with_cluster_options
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.policy_of import find_tiered
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.topics.policy_text import ORIGINALS, outage_text
from rlm.policy.topic.policy_values import (
    COPY_LAG_BYTES,
    COPY_LAG_MS,
    DELETION_LAG_MS,
    TRIM_MIN_AGE_MS,
)
from rlm.status.json_shape import JsonField, JsonKind, JsonShape
from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    AS_MANAGERS_SETTING,
    AS_TOTAL_RETENTION,
    UNLIMITED,
    TopicPolicy,
)
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.metadata import SegmentState

DESCRIBE_DOCUMENT = JsonShape(
    name="TopicDescription",
    meaning="A topic's effective settings, and what is stored of it.",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic's name."),
        "topic_id": JsonField(JsonKind.ID, "The topic's id."),
        "state": JsonField(JsonKind.TEXT, "The topic's state, such as `ACTIVE`."),
        "settings": JsonField(
            JsonShape(
                name="TopicSetting",
                meaning="A setting of a topic, as managers apply it.",
                fields={
                    "name": JsonField(JsonKind.TEXT, "The setting, such as `retention.ms`."),
                    "value": JsonField(
                        JsonKind.NUMBER_OR_TEXT,
                        "The effective value. The end of the name says the unit; -1 is unlimited.",
                    ),
                    "origin": JsonField(
                        JsonKind.TEXT,
                        "`topic`, another setting of the topic, or `managers`: then it is of the "
                        "configuration file of the command.",
                    ),
                },
            ),
            "The settings.",
            is_list=True,
        ),
        "originals": ORIGINALS,
        "partitions": JsonField(JsonKind.COUNT, "Number of partitions."),
        "stored_segments": JsonField(JsonKind.COUNT, "Number of stored segments."),
        "stored_bytes": JsonField(JsonKind.BYTES, "Size of the stored segments' logs."),
    },
)

_EXAMPLE = "Example: rlm topic describe orders --json --config rlm.properties"
_TOPIC = "topic"
_MANAGERS = "managers"

_Topic = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """Represents a setting of a topic: its effective value, and where the value comes from.

    `origin` is `topic`, another setting of the topic, or `managers`. The command reads the settings
    of managers from its own configuration file.
    """

    name: str
    value: int | str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPartitions:
    """Represents what is stored of a topic."""

    partitions: int
    stored_segments: int
    stored_bytes: int


def add_to(topic: typer.Typer) -> None:
    """Add the command."""
    topic.command("describe", help=_describe.__doc__, epilog=_EXAMPLE)(_describe)


@with_cluster_options
def _describe(topic: _Topic, *, cluster: ClusterOptions, as_json: JsonOption = False) -> None:
    """Show a topic's policy and where each value comes from.

    Shows the effective values, the saved originals, and what is stored. The managers' settings are
    those of the command's --config, or the defaults.
    """
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        policy, partitions = find_tiered(session, PartitionName(topic=topic))
        stored = _stored(session, partitions)
    settings = effective_settings(
        policy,
        managers_trim_lag_ms=cluster.config.deleting.trim_lag_ms,
        managers_trim_min_age_ms=cluster.config.manager.trim_min_age_ms,
    )
    with printing():
        if as_json:
            typer.echo(json.dumps(describe_json(policy, settings, stored), indent=2))
        else:
            for line in describe_lines(policy, settings, stored):
                typer.echo(line)


def effective_settings(
    policy: TopicPolicy, *, managers_trim_lag_ms: int, managers_trim_min_age_ms: int
) -> Sequence[PolicyValue]:
    """Return each setting of a tiered topic as managers with these settings apply it."""
    local_ms, local_bytes = f"local.{RETENTION_MS}", f"local.{RETENTION_BYTES}"
    is_managers_lag = policy.local_deletion_lag_ms == AS_MANAGERS_SETTING
    values: tuple[tuple[str, int | str, str], ...] = (
        (RETENTION_MS, policy.retention_ms, _TOPIC),
        (RETENTION_BYTES, policy.retention_bytes, _TOPIC),
        (
            local_ms,
            policy.effective_local_retention_ms,
            RETENTION_MS if policy.local_retention_ms == AS_TOTAL_RETENTION else _TOPIC,
        ),
        (
            local_bytes,
            policy.effective_local_retention_bytes,
            RETENTION_BYTES if policy.local_retention_bytes == AS_TOTAL_RETENTION else _TOPIC,
        ),
        (
            COPY_LAG_MS,
            policy.effective_copy_lag_ms,
            local_ms if policy.copy_lag_ms == AS_LOCAL_RETENTION else _TOPIC,
        ),
        (
            COPY_LAG_BYTES,
            policy.effective_copy_lag_bytes,
            local_bytes if policy.copy_lag_bytes == AS_LOCAL_RETENTION else _TOPIC,
        ),
        ("remote.copy.lag.since", policy.copy_lag_since.name.lower(), _TOPIC),
        ("outage.policy", outage_text(policy), _TOPIC),
        (
            DELETION_LAG_MS,
            managers_trim_lag_ms if is_managers_lag else policy.local_deletion_lag_ms,
            _MANAGERS if is_managers_lag else _TOPIC,
        ),
        (TRIM_MIN_AGE_MS, managers_trim_min_age_ms, _MANAGERS),
    )
    return tuple(PolicyValue(name=n, value=value, origin=o) for n, value, o in values)


def describe_json(
    policy: TopicPolicy, settings: Sequence[PolicyValue], stored: StoredPartitions
) -> Mapping[str, object]:
    """Return the document of --json."""
    return {
        "topic": policy.topic,
        "topic_id": id_to_text(policy.topic_id),
        "state": policy.state.name,
        "settings": [asdict(each) for each in settings],
        "originals": {each.name: each.value for each in policy.originals},
        **asdict(stored),
    }


def describe_lines(
    policy: TopicPolicy, settings: Sequence[PolicyValue], stored: StoredPartitions
) -> Iterator[str]:
    """Yield the lines for people."""
    yield f"topic  {policy.topic}"
    yield f"id     {id_to_text(policy.topic_id)}"
    yield f"state  {policy.state.name}"
    yield ""
    rows = [("setting", "value", "origin")]
    rows += [(each.name, _value_text(each), each.origin) for each in settings]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        yield f"{name.ljust(widths[0])}  {value.ljust(widths[1])}  {origin}"
    yield ""
    yield "originals, which `rlm topic disable` restores"
    for each in policy.originals:
        yield f"  {each.name}={'(no override)' if each.value is None else each.value}"
    yield ""
    yield (
        f"{stored.partitions} partitions, stored {size_text(stored.stored_bytes)} "
        f"in {stored.stored_segments} segments"
    )


def _value_text(setting: PolicyValue) -> str:
    value = setting.value
    if isinstance(value, str):
        return value
    if value == UNLIMITED:
        return "unlimited"
    text = age_text(value) if setting.name.endswith("ms") else size_text(value)
    return f"{value} ({text})" if value else "0"


def _stored(session: CommandSession, partitions: Sequence[TopicIdPartition]) -> StoredPartitions:
    finished = [
        record.metadata
        for tip in partitions
        for record in session.metadata.list_remote_log_segments(tip)
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    ]
    return StoredPartitions(
        partitions=len(partitions),
        stored_segments=len(finished),
        stored_bytes=sum(each.segment_size_bytes for each in finished),
    )
