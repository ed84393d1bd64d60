"""Lists the families of all events: one entry for each event of MetadataEvent. Pure.

docs/architecture.md lists what a new event requires.
"""

from __future__ import annotations

from typing import Any

from rlmm.events.anomaly import AnomalyFamily
from rlmm.events.claim import ClaimFamily
from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily, EventFamily, PartitionFamily
from rlmm.events.gaps import GapsFamily
from rlmm.events.local_trim import LocalTrimFamily
from rlmm.events.log_start import LogStartFamily, LogStartRequestFamily
from rlmm.events.loss import AcceptedLossFamily
from rlmm.events.offload import OffloadRequestFamily
from rlmm.events.offload_segment import OFFLOAD_SEGMENTS
from rlmm.events.partition_delete import PartitionDeleteFamily
from rlmm.events.pause import PAUSES
from rlmm.events.policy import POLICIES
from rlmm.events.policy_level import POLICY_LEVELS
from rlmm.events.read_lease import ReadLeaseFamily
from rlmm.events.registration import REGISTRATIONS
from rlmm.events.secret import SECRETS
from rlmm.events.segment import DeadLetteredFamily, SegmentFamily
from rlmm.record_keys import RecordKind

AnyFamily = EventFamily[Any, Any, Any]

SEGMENTS = SegmentFamily()

TOPIC_FAMILIES: tuple[ClusterFamily[Any, Any, Any], ...] = (PAUSES, POLICIES)
"""Families with one record for each topic id, in the order of their removal for a deleted topic.

The policy comes last: while it exists, managers try again to remove the topic.
"""

PARTITION_FAMILIES: tuple[PartitionFamily[Any, Any], ...] = (
    LocalTrimFamily(),
    LogStartFamily(),
    LogStartRequestFamily(),
    ReadLeaseFamily(),
    GapsFamily(),
    OffloadRequestFamily(),
    OFFLOAD_SEGMENTS,
    AcceptedLossFamily(),
    AnomalyFamily(),
    ClaimFamily(),
)
"""Families of a partition's records, in the order of their removal for a deleted partition.

Claims come last: without them, a fold of the remaining records would refuse accepted events.
"""

FAMILIES: tuple[AnyFamily, ...] = (
    SEGMENTS,
    DeadLetteredFamily(),
    *PARTITION_FAMILIES,
    PartitionDeleteFamily(),
    *TOPIC_FAMILIES,
    POLICY_LEVELS,
    REGISTRATIONS,
    SECRETS,
)

_BY_EVENT = {family.event_type: family for family in FAMILIES}
_BY_FIELD = {family.field: family for family in FAMILIES}
_BY_KIND = {family.kind: family for family in FAMILIES}


def family_of(event: Event) -> AnyFamily:
    """Return the family of an event."""
    return _BY_EVENT[type(event)]


def family_of_field(field: str) -> AnyFamily:
    """Return the family whose event has this field in MetadataEvent."""
    return _BY_FIELD[field]


def family_of_kind(kind: RecordKind) -> AnyFamily:
    """Return a family with this kind of key; all families of a kind fold tombstones alike."""
    return _BY_KIND[kind]
