"""`rlm topic describe`: shows a topic's policy, with the origin of each effective value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from rlm.cli.invocation.amounts import age_text, counted, size_text
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.managers import managers_defaults
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import ClusterOptions, JsonOption, with_cluster_options
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.terminal.lines import output_width, print_lines
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.cli.topics.policy_text import ORIGINALS, outage_text
from rlm.facts.topic_configs import RETENTION_BYTES, RETENTION_MS
from rlm.policy.topic.levels import origin_text
from rlm.policy.topic.policy_values import (
    COPY_LAG_BYTES,
    COPY_LAG_MS,
    DELETION_LAG_MS,
    LAYOUT,
    OFFLOAD_MODE,
    OFFLOAD_ROLLOVER_MS,
    OFFLOAD_SEGMENT_BYTES,
    TRIM_MIN_AGE_MS,
    FileDefaults,
)
from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    AS_MANAGERS_SETTING,
    AS_TOTAL_RETENTION,
    UNLIMITED,
    PolicySetting,
    TopicPolicy,
)
from rlmm.events.policy_level import PolicyLevel, policy_levels
from rsm.config.choices import Layout
from rsm.config.values import require_topic_name
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.coverage import log_bytes, stored_ranges
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
                        "The effective value. The suffix of the name is the unit; -1 is unlimited.",
                    ),
                    "origin": JsonField(
                        JsonKind.TEXT,
                        "`topic`, `pattern P` or `default`: where it was set. The name of another "
                        "setting: the value follows that setting. `broker`: the topic's retention "
                        "from before it was tiered. `managers`: the managers' configuration "
                        "files. `built-in`: none of these.",
                    ),
                },
            ),
            "The settings.",
            is_list=True,
        ),
        "originals": ORIGINALS,
        "partitions": JsonField(JsonKind.COUNT, "Number of partitions."),
        "stored_segments": JsonField(JsonKind.COUNT, "Number of stored segments."),
        "stored_bytes": JsonField(
            JsonKind.BYTES,
            "Size of the stored log. Records that two segments have in common count once.",
        ),
    },
)

_EXAMPLE = "Example: rlm topic describe orders --json --config rlm.properties"
_MANAGERS = "managers"
_COLUMNS = (
    TextColumn(name="setting"),
    TextColumn(name="value", is_movable=True),
    TextColumn(name="origin", is_movable=True),
)

_Topic = Annotated[
    str, typer.Argument(metavar="NAME", help="The topic.", callback=require_topic_name)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """Represents a setting of a topic: its effective value, and where the value comes from.

    `origin` is a result of `rlm.policy.topic.levels.origin_text`, or the name of another setting.
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

    Shows the effective values, the saved originals, and what is stored. A value may come from the
    topic, a pattern, the default or the managers' files (`rlm policy`). Managers register the
    settings that their files give topics. If no live manager has registered any, shows those of
    --config. Always shows remote.local.trim.min.age.ms from --config.
    """
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        policy, partitions = find_tiered(session, PartitionName(topic=topic))
        levels = policy_levels(session.metadata)
        stored = _stored(session, partitions)
        managers = managers_defaults(session)
    settings = effective_settings(
        policy,
        managers_trim_min_age_ms=cluster.config.manager.trim_min_age_ms,
        managers=managers,
        levels=levels,
    )
    with printing():
        if as_json:
            typer.echo(json.dumps(describe_json(policy, settings, stored), indent=2))
        else:
            print_lines(describe_lines(policy, settings, stored, width=output_width()))


def effective_settings(
    policy: TopicPolicy,
    *,
    managers_trim_min_age_ms: int,
    managers: FileDefaults,
    levels: Sequence[PolicyLevel] = (),
) -> Sequence[PolicyValue]:
    """Return each setting of a tiered topic as managers apply it.

    `managers` are the defaults of the managers' files, `levels` all policy levels.
    """
    origins = {each: origin_text(each, policy, levels, managers.values) for each in PolicySetting}
    local_ms, local_bytes = f"local.{RETENTION_MS}", f"local.{RETENTION_BYTES}"
    if policy.local_retention_ms == AS_TOTAL_RETENTION:
        origins[PolicySetting.LOCAL_RETENTION_MS] = RETENTION_MS
    if policy.local_retention_bytes == AS_TOTAL_RETENTION:
        origins[PolicySetting.LOCAL_RETENTION_BYTES] = RETENTION_BYTES
    if policy.copy_lag_ms == AS_LOCAL_RETENTION:
        origins[PolicySetting.COPY_LAG_MS] = local_ms
    if policy.copy_lag_bytes == AS_LOCAL_RETENTION:
        origins[PolicySetting.COPY_LAG_BYTES] = local_bytes
    is_managers_lag = policy.local_deletion_lag_ms == AS_MANAGERS_SETTING
    deletion_lag_ms = managers.deletion_lag_ms if is_managers_lag else policy.local_deletion_lag_ms
    offload = policy.effective_offload(managers.offload)
    values: Mapping[PolicySetting, tuple[str, int | str]] = {
        PolicySetting.RETENTION_MS: (RETENTION_MS, policy.retention_ms),
        PolicySetting.RETENTION_BYTES: (RETENTION_BYTES, policy.retention_bytes),
        PolicySetting.LOCAL_RETENTION_MS: (local_ms, policy.effective_local_retention_ms),
        PolicySetting.LOCAL_RETENTION_BYTES: (local_bytes, policy.effective_local_retention_bytes),
        PolicySetting.COPY_LAG_MS: (COPY_LAG_MS, policy.effective_copy_lag_ms),
        PolicySetting.COPY_LAG_BYTES: (COPY_LAG_BYTES, policy.effective_copy_lag_bytes),
        PolicySetting.COPY_LAG_SINCE: (
            "remote.copy.lag.since",
            policy.copy_lag_since.name.lower(),
        ),
        PolicySetting.OUTAGE_POLICY: ("outage.policy", outage_text(policy)),
        PolicySetting.LOCAL_DELETION_LAG_MS: (DELETION_LAG_MS, deletion_lag_ms),
        PolicySetting.OFFLOAD_MODE: (OFFLOAD_MODE, offload.mode.name.lower()),
        PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES: (OFFLOAD_SEGMENT_BYTES, offload.segment_max_bytes),
        PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS: (
            OFFLOAD_ROLLOVER_MS,
            offload.segment_rollover_ms,
        ),
        PolicySetting.LAYOUT: (LAYOUT, policy.layout or _managers_layout(managers)),
    }
    rows = [
        PolicyValue(name=name, value=value, origin=origins[setting])
        for setting, (name, value) in values.items()
    ]
    after_lag = list(values).index(PolicySetting.LOCAL_DELETION_LAG_MS) + 1
    min_age = PolicyValue(name=TRIM_MIN_AGE_MS, value=managers_trim_min_age_ms, origin=_MANAGERS)
    return (*rows[:after_lag], min_age, *rows[after_lag:])


def _managers_layout(managers: FileDefaults) -> str:
    """Return the layout of topics that set none; other text if a plug-in stores segments."""
    if managers.layouts is None:
        return Layout.RAW.value
    return managers.layouts[0] if managers.layouts else "of the plug-in"


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
    policy: TopicPolicy,
    settings: Sequence[PolicyValue],
    stored: StoredPartitions,
    *,
    width: int | None,
) -> Iterator[str]:
    """Yield the lines for people."""
    yield f"topic  {policy.topic}"
    yield f"id     {id_to_text(policy.topic_id)}"
    yield f"state  {policy.state.name}"
    yield ""
    rows = (TextRow(cells=(each.name, _value_text(each), each.origin)) for each in settings)
    yield from table_lines(_COLUMNS, rows, width=width)
    yield ""
    yield "originals, which `rlm topic disable` restores"
    for each in policy.originals:
        yield f"  {each.name}={'(no override)' if each.value is None else each.value}"
    yield ""
    partitions = counted(stored.partitions, "partition")
    segments = counted(stored.stored_segments, "segment")
    yield f"{partitions}, stored {size_text(stored.stored_bytes)} in {segments}"


def _value_text(setting: PolicyValue) -> str:
    value = setting.value
    if isinstance(value, str):
        return value
    if value == UNLIMITED:
        return "unlimited"
    text = age_text(value) if setting.name.endswith("ms") else size_text(value)
    return f"{value} ({text})" if value else "0"


def _stored(session: CommandSession, partitions: Sequence[TopicIdPartition]) -> StoredPartitions:
    segments = stored_bytes = 0
    for tip in partitions:
        finished = [
            record.metadata
            for record in session.metadata.list_remote_log_segments(tip)
            if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        ]
        segments += len(finished)
        lineage = session.metadata.partition_state(tip).lineage
        stored_bytes += log_bytes(stored_ranges(lineage, finished))
    return StoredPartitions(
        partitions=len(partitions), stored_segments=segments, stored_bytes=stored_bytes
    )
