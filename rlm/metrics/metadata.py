"""Exports the state of a process's metadata cache as metrics, read at each scrape.

The metrics are correct even while the process is not ready. Managers and gateways export the same
metrics, each for its own cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from rlm.metrics.description import (
    MetricDescription,
    MetricLabel,
    MetricUnit,
    any_of,
    explained,
)
from rlm.metrics.measure import Measure
from rlmm.events.fold_state import Refusal
from rlmm.follow.applier import CORRUPT, MISPLACED, NEWER_VERSION, UNSUPPORTED
from rlmm.metrics import MetadataMetrics
from rlmm.spi import UnreadyReason


class MetadataCollector(Collector):
    """Collects the metrics from `counted` at each scrape; register it once. Thread-safe."""

    def __init__(self, counted: Callable[[], MetadataMetrics]) -> None:
        self._counted = counted

    def describe(self) -> Iterable[Metric]:
        return [measure.empty_family() for measure in _MEASURES]

    def collect(self) -> Iterable[Metric]:
        counted = self._counted()
        for measure in _MEASURES:
            yield measure.family(counted)


def metadata_descriptions() -> Sequence[MetricDescription]:
    """Return the descriptions of these metrics, for the documentation."""
    return tuple(measure.description for measure in _MEASURES)


def _gauge(
    name: str, unit: MetricUnit, meaning: str, value: Callable[[MetadataMetrics], float]
) -> Measure[MetadataMetrics]:
    return Measure(name, "gauge", unit, (), meaning, lambda counted: [((), value(counted))])


def _counter(
    name: str, meaning: str, value: Callable[[MetadataMetrics], float]
) -> Measure[MetadataMetrics]:
    return Measure(
        name, "counter", MetricUnit.COUNT, (), meaning, lambda counted: [((), value(counted))]
    )


def _by_reason(
    name: str,
    reason: MetricLabel,
    meaning: str,
    values: Callable[[MetadataMetrics], Mapping[str, int]],
) -> Measure[MetadataMetrics]:
    return Measure(
        name,
        "counter",
        MetricUnit.COUNT,
        (reason,),
        meaning,
        lambda counted: [((reason,), count) for reason, count in values(counted).items()],
    )


_REFUSALS = {
    Refusal.STALE_EPOCH: "a claim with an older leader epoch than the owner's",
    Refusal.NOT_OWNER: "the writer does not own the partition",
    Refusal.UNKNOWN_SEGMENT: "no earlier event of the segment is known",
    Refusal.STEP_BACK: "the state was reached before",
    Refusal.SKIPPED_STATE: "a state before it is missing",
    Refusal.UNEXPECTED_STATE: "the segment is not in the state that the event expects",
    Refusal.TOO_LATE: "the copy ended after its deadline",
    Refusal.BELOW_CURRENT: "it changes nothing, because the recorded value is at least as high",
    Refusal.CLAIM_REMOVED: "the tombstone of a claim that is still needed",
    Refusal.PARTITION_DELETED: "the partition is deleted",
    Refusal.TOO_MANY: "the partition has the maximum number of anomalies",
    Refusal.PARTITION_DELETE_REMOVED: "the tombstone of a partition's deletion",
}
_UNREADY = {
    UnreadyReason.UNREACHABLE: "the process is not connected to the topic",
    UnreadyReason.GONE: "the topic, or a part of it, is missing",
    UnreadyReason.WRONG_SHAPE: "the topic's settings are wrong",
    UnreadyReason.CATCHING_UP: "events are not applied yet",
    UnreadyReason.CACHE: "the cache cannot be used",
}

_MEASURES: tuple[Measure[MetadataMetrics], ...] = (
    _counter(
        "rlm_metadata_events_applied",
        "Metadata events that the fold accepted.",
        lambda m: m.applied_events_count,
    ),
    _by_reason(
        "rlm_metadata_events_refused",
        explained("reason", **{each.value: _REFUSALS.get(each, "") for each in Refusal}),
        "Metadata events that the fold refused.",
        lambda m: m.refused_events_count,
    ),
    _by_reason(
        "rlm_metadata_events_skipped",
        explained(
            "reason",
            **{
                CORRUPT: "the record cannot be decoded",
                UNSUPPORTED: "this version does not know the format",
                NEWER_VERSION: "only a newer version can fold the record",
                MISPLACED: "the record is in the wrong partition",
            },
        ),
        "Records of the metadata topic that the process skipped.",
        lambda m: m.skipped_events_count,
    ),
    _counter(
        "rlm_metadata_rebuilds",
        "Times that the process rebuilt the cache from the metadata topic.",
        lambda m: m.rebuilds_count,
    ),
    _counter(
        "rlm_metadata_failures",
        "Failed attempts to read the metadata topic or to write the cache. The process tries again "
        "each time.",
        lambda m: m.failures_count,
    ),
    _gauge(
        "rlm_metadata_ready",
        MetricUnit.FLAG,
        "1 while the metadata is ready, else 0. `rlm_metadata_not_ready` has the reason.",
        lambda m: m.is_ready,
    ),
    Measure(
        "rlm_metadata_not_ready",
        "gauge",
        MetricUnit.FLAG,
        (explained("reason", **{each.value: _UNREADY.get(each, "") for each in UnreadyReason}),),
        "1 while the metadata is not ready for this reason, else 0.",
        lambda m: [((kind.value,), kind.value == m.not_ready) for kind in UnreadyReason],
    ),
    _gauge(
        "rlm_metadata_lag_events",
        MetricUnit.COUNT,
        "Records of the followed metadata partitions that the process has not applied yet.",
        lambda m: m.lag_events_count,
    ),
    Measure(
        "rlm_metadata_position",
        "gauge",
        MetricUnit.OFFSET,
        (any_of("metadata_partition", "a partition of the metadata topic"),),
        "Offset of the next record to apply, for each followed partition of the metadata topic.",
        lambda m: [((str(partition),), offset) for partition, offset in m.positions.items()],
    ),
    _gauge(
        "rlm_metadata_partitions_catching_up",
        MetricUnit.COUNT,
        "Followed partitions of the metadata topic that the process has not read to their end yet.",
        lambda m: m.catching_up_count,
    ),
    _gauge(
        "rlm_metadata_newer_records",
        MetricUnit.COUNT,
        "Records that only a newer version of `rlm` can fold. The process decides nothing about "
        "the partitions that they concern.",
        lambda m: m.newer_records_count,
    ),
    _gauge(
        "rlm_metadata_cache_segments",
        MetricUnit.COUNT,
        "Estimated number of segments in the cache, in any state.",
        lambda m: m.segments_count,
    ),
    _gauge(
        "rlm_metadata_cache_rows",
        MetricUnit.COUNT,
        "Estimated number of rows in the cache, including indexes.",
        lambda m: m.rows_count,
    ),
    _gauge(
        "rlm_metadata_cache_disk_bytes",
        MetricUnit.BYTES,
        "Bytes of the cache on disk.",
        lambda m: m.disk_bytes,
    ),
    _gauge(
        "rlm_metadata_cache_block_cache_bytes",
        MetricUnit.BYTES,
        "Bytes of memory that the cache uses for blocks read from disk.",
        lambda m: m.block_cache_bytes,
    ),
    _gauge(
        "rlm_metadata_cache_write_buffer_bytes",
        MetricUnit.BYTES,
        "Bytes of memory that the cache uses for changes not yet written to its tables.",
        lambda m: m.write_buffer_bytes,
    ),
)
