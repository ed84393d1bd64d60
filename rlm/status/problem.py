"""Represents a problem that the status of a cluster reports, and its JSON. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rlm.status.document_parts import Json
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import TopicIdPartition


class ProblemKind(Enum):
    """Represents what is wrong. The kinds are in order of urgency, the most urgent first."""

    TOPIC_DELETED = "topic_deleted"
    DIVERGED = "diverged"
    EXTERNAL_START = "external_start"
    DAMAGED_OBJECTS = "damaged_objects"
    REPAIRS_FAIL = "repairs_fail"
    NO_LEADER = "no_leader"
    LEADER_SILENT = "leader_silent"
    MANAGER_SILENT = "manager_silent"
    GATEWAY_SILENT = "gateway_silent"
    NOT_READY = "not_ready"
    FILES_DIFFER = "files_differ"
    NOT_REPORTED = "not_reported"
    NOT_EVALUATED = "not_evaluated"
    HANGING_TRANSACTION = "hanging_transaction"
    COPY_BLOCKED = "copy_blocked"
    STREAM_LATE = "stream_late"
    TRIM_BLOCKED = "trim_blocked"
    EXPIRY_BLOCKED = "expiry_blocked"
    MERGES_FAIL = "merges_fail"
    MERGES_LATE = "merges_late"


PROBLEM = JsonShape(
    name="Problem",
    meaning="One reason for attention. Lists of problems begin with the most urgent.",
    fields={
        "kind": JsonField(
            JsonKind.TEXT, f"One of {', '.join(f'`{each.value}`' for each in ProblemKind)}."
        ),
        "process": JsonField(
            JsonKind.TEXT,
            "The process, such as `manager of broker 3`; null if the problem is not one of a "
            "process.",
            is_nullable=True,
        ),
        "partitions": JsonField(
            JsonKind.TEXT, "The partitions, each as `topic:partition`.", is_list=True
        ),
        "reason": JsonField(JsonKind.TEXT, "What is wrong and why."),
        "next_command": JsonField(
            JsonKind.TEXT, "The command to type next, without the options that name the cluster."
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Represents a problem of a process or of partitions that needs attention.

    `process` is a role with its broker, such as "manager of broker 3". It is empty if the problem
    is not one of a process. `partitions` of a silent process are those that its broker leads.
    """

    kind: ProblemKind
    reason: str
    command: str
    process: str = ""
    partitions: tuple[TopicIdPartition, ...] = ()

    def to_json(self) -> Json:
        return {
            "kind": self.kind.value,
            "process": self.process or None,
            "partitions": [f"{each.topic}:{each.partition}" for each in self.partitions],
            "reason": self.reason,
            "next_command": self.command,
        }
