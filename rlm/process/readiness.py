"""Represents the readiness of a process, and its JSON document.

rlm.status.document defines the other documents. This module is separate so that the supervisor
imports nothing about partitions and policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlm.status.json_object import JsonObject
from rsm.program.json_shape import JsonField, JsonKind, JsonShape

READINESS = JsonShape(
    name="Readiness",
    meaning="Whether a process does all of its work.",
    fields={
        "ready": JsonField(JsonKind.FLAG, "Whether the process does all of its work."),
        "reasons": JsonField(JsonKind.TEXT, "Why it is not ready.", is_list=True),
        "warnings": JsonField(
            JsonKind.TEXT, "What an operator should check although it is ready.", is_list=True
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessReport:
    """Represents whether a process does all of its work, and what an operator should check.

    `reasons` are why it is not ready. `warnings` do not affect `is_ready`.
    """

    is_ready: bool
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> Mapping[str, object]:
        return {
            "ready": self.is_ready,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_json(cls, document: object) -> ReadinessReport:
        found = JsonObject(document)
        return cls(
            is_ready=found.flag("ready"),
            reasons=found.texts("reasons"),
            warnings=found.texts("warnings"),
        )
