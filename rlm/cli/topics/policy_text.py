"""Formats topics' policies. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.policy.topic.policy_values import (
    DELETION_LAG_MS,
    LAYOUT,
    OFFLOAD_MODE,
    OFFLOAD_ROLLOVER_MS,
    OFFLOAD_SEGMENT_BYTES,
)
from rlmm.events.policy import (
    AS_MANAGERS_SETTING,
    CopyLagSince,
    OutagePolicy,
    PolicySetting,
    PolicyState,
    TopicPolicy,
)
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text

ORIGINALS = JsonField(
    JsonKind.MAP,
    "The topic's own retention settings from before it was tiered, by Kafka's names. Values are "
    "texts, or null if the topic had no override. `rlm topic disable` restores them.",
)
TOPICS_DOCUMENT = JsonShape(
    name="Topics",
    meaning="The topics that are or were tiered.",
    fields={
        "topics": JsonField(
            JsonShape(
                name="TopicPolicy",
                meaning="A topic's policy, as it was set.",
                fields={
                    "topic": JsonField(JsonKind.TEXT, "The topic's name."),
                    "topic_id": JsonField(JsonKind.ID, "The topic's id."),
                    "state": JsonField(
                        JsonKind.TEXT,
                        f"One of {', '.join(f'`{each.name}`' for each in PolicyState)}.",
                    ),
                    "retention_ms": JsonField(
                        JsonKind.DURATION, "Total retention; -1 is unlimited."
                    ),
                    "retention_bytes": JsonField(
                        JsonKind.BYTES, "Total retention of each partition; -1 is unlimited."
                    ),
                    "local_retention_ms": JsonField(
                        JsonKind.DURATION,
                        "Retention on the broker; -2 is the total retention, -1 unlimited.",
                    ),
                    "local_retention_bytes": JsonField(
                        JsonKind.BYTES,
                        "Retention of each partition on the broker; -2 is the total retention, -1 "
                        "unlimited.",
                    ),
                    "copy_lag_ms": JsonField(
                        JsonKind.DURATION,
                        "Age at which a rolled segment is copied; 0 copies at once; -1 uses the "
                        "limit of local retention.",
                    ),
                    "copy_lag_bytes": JsonField(
                        JsonKind.BYTES,
                        "Total size of newer segments at which a segment is copied; 0 copies at "
                        "once; -1 uses the limit of local retention.",
                    ),
                    "copy_lag_since": JsonField(
                        JsonKind.TEXT,
                        "Start of the age `copy_lag_ms`: "
                        f"{' or '.join(f'`{each.name.lower()}`' for each in CopyLagSince)}.",
                    ),
                    "outage_policy": JsonField(JsonKind.TEXT, "`hold` or `shed`."),
                    "local_deletion_lag_ms": JsonField(
                        JsonKind.DURATION,
                        "How long a stored segment stays on the broker; -1 is the managers' "
                        "setting.",
                    ),
                    "offload_mode": JsonField(
                        JsonKind.TEXT,
                        "What is offloaded: `segment`, `stream`, or `inherit`, the managers' "
                        "setting.",
                    ),
                    "offload_segment_max_bytes": JsonField(
                        JsonKind.BYTES,
                        "Size at which an offload segment ends; -1 is the managers' setting.",
                    ),
                    "offload_segment_rollover_ms": JsonField(
                        JsonKind.DURATION,
                        "Time after which an offload segment ends; -1 is the managers' setting.",
                    ),
                    "layout": JsonField(
                        JsonKind.TEXT,
                        "Layout of new segments: `raw`, `chunked`, `block_v1`, `block_v2`, the "
                        "class of a plug-in, or `inherit`, the managers' setting.",
                    ),
                    "inherited": JsonField(
                        JsonKind.TEXT,
                        "Names of the settings that are not set for the topic, so that it "
                        "inherits them from policy levels.",
                        is_list=True,
                    ),
                    "originals": ORIGINALS,
                    "delete_remote": JsonField(
                        JsonKind.FLAG,
                        "Whether managers delete the stored data after `rlm topic disable`.",
                    ),
                },
            ),
            "The topics.",
            is_list=True,
        )
    },
)

_COLUMNS = (
    TextColumn(name="topic"),
    TextColumn(name="id", is_movable=True),
    TextColumn(name="state"),
    TextColumn(name="retention.ms", is_number=True),
    TextColumn(name="retention.bytes", is_number=True),
    TextColumn(name="local.ms", is_number=True),
    TextColumn(name="local.bytes", is_number=True),
    TextColumn(name="originals", is_movable=True),
)


def outage_text(policy: TopicPolicy) -> str:
    """Return the outage policy as its option names it: hold or shed."""
    return policy.outage_policy.name.lower().partition("_")[0]


def policy_line(policy: TopicPolicy) -> str:
    """Return a policy as one line."""
    texts = [
        f"{policy.topic}: {policy.state.name}",
        f"retention.ms={policy.retention_ms} retention.bytes={policy.retention_bytes}",
        f"local.retention.ms={policy.local_retention_ms}",
        f"local.retention.bytes={policy.local_retention_bytes}",
    ]
    if policy.copy_lag_ms and policy.copy_lag_bytes:
        texts.append(f"remote.copy.lag.ms={policy.copy_lag_ms}")
        texts.append(f"remote.copy.lag.bytes={policy.copy_lag_bytes}")
        if policy.copy_lag_since is CopyLagSince.ROLL:
            texts.append("remote.copy.lag.since=roll")
    if policy.outage_policy is not OutagePolicy.HOLD:
        texts.append(f"outage={outage_text(policy)}")
    if policy.local_deletion_lag_ms != AS_MANAGERS_SETTING:
        texts.append(f"{DELETION_LAG_MS}={policy.local_deletion_lag_ms}")
    if policy.offload_mode is not None:
        texts.append(f"{OFFLOAD_MODE}={policy.offload_mode.name.lower()}")
    if policy.offload_segment_max_bytes != AS_MANAGERS_SETTING:
        texts.append(f"{OFFLOAD_SEGMENT_BYTES}={policy.offload_segment_max_bytes}")
    if policy.offload_segment_rollover_ms != AS_MANAGERS_SETTING:
        texts.append(f"{OFFLOAD_ROLLOVER_MS}={policy.offload_segment_rollover_ms}")
    if policy.layout is not None:
        texts.append(f"{LAYOUT}={policy.layout}")
    return " ".join(texts)


def policy_json(policy: TopicPolicy) -> Mapping[str, object]:
    """Return a policy as `rlm topic list --json` prints it."""
    return {
        "topic": policy.topic,
        "topic_id": id_to_text(policy.topic_id),
        "state": policy.state.name,
        "retention_ms": policy.retention_ms,
        "retention_bytes": policy.retention_bytes,
        "local_retention_ms": policy.local_retention_ms,
        "local_retention_bytes": policy.local_retention_bytes,
        "copy_lag_ms": policy.copy_lag_ms,
        "copy_lag_bytes": policy.copy_lag_bytes,
        "copy_lag_since": policy.copy_lag_since.name.lower(),
        "outage_policy": outage_text(policy),
        "local_deletion_lag_ms": policy.local_deletion_lag_ms,
        "offload_mode": "inherit"
        if policy.offload_mode is None
        else policy.offload_mode.name.lower(),
        "offload_segment_max_bytes": policy.offload_segment_max_bytes,
        "offload_segment_rollover_ms": policy.offload_segment_rollover_ms,
        "layout": policy.layout or "inherit",
        "inherited": [each.field for each in PolicySetting if each in policy.inherited],
        "originals": {each.name: each.value for each in policy.originals},
        "delete_remote": policy.delete_remote,
    }


def policy_lines(policies: Sequence[TopicPolicy], *, width: int | None) -> Iterator[str]:
    """Yield a table with one row for each policy."""
    if not policies:
        yield "no topics"
    yield from table_lines(_COLUMNS, map(_row, policies), width=width)


def _row(policy: TopicPolicy) -> TextRow:
    originals = (f"{o.name}={'-' if o.value is None else o.value}" for o in policy.originals)
    return TextRow(
        cells=(
            policy.topic,
            id_to_text(policy.topic_id),
            policy.state.name,
            str(policy.retention_ms),
            str(policy.retention_bytes),
            str(policy.local_retention_ms),
            str(policy.local_retention_bytes),
            " ".join(originals),
        )
    )
