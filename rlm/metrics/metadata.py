"""Exports the state of a process's metadata cache as metrics, read at each scrape.

The metrics are correct even while the process is not ready. A manager and a gateway export the same
metrics, each of its own cache.
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
    one_of,
)
from rlm.metrics.measure import Measure
from rlmm.events.fold_state import Refusal
from rlmm.follow.applier import CORRUPT, MISPLACED, NEWER_VERSION, UNSUPPORTED
from rlmm.metrics import MetadataMetrics
from rlmm.spi import UnreadyReason


class MetadataCollector(Collector):
    """Collects at each scrape from `counted`; register it once. Thread-safe."""

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


_MEASURES: tuple[Measure[MetadataMetrics], ...] = (
    _counter(
        "rlm_metadata_events_applied",
        "Metadata events that the fold accepted.",
        lambda m: m.applied_events_count,
    ),
    _by_reason(
        "rlm_metadata_events_refused",
        one_of("reason", *(refusal.value for refusal in Refusal)),
        "Metadata events that the fold refused.",
        lambda m: m.refused_events_count,
    ),
    _by_reason(
        "rlm_metadata_events_skipped",
        explained(
            "reason",
            **{
                CORRUPT: "",
                UNSUPPORTED: "",
                NEWER_VERSION: "",
                MISPLACED: "in the wrong partition",
            },
        ),
        "Records of the metadata topic that were skipped.",
        lambda m: m.skipped_events_count,
    ),
    _counter(
        "rlm_metadata_rebuilds",
        "Times that the cache was rebuilt from the topic.",
        lambda m: m.rebuilds_count,
    ),
    _counter(
        "rlm_metadata_failures",
        "Failed attempts to read the topic or to write the cache. The process tries again "
        "each time.",
        lambda m: m.failures_count,
    ),
    _gauge(
        "rlm_metadata_ready",
        MetricUnit.FLAG,
        "1 while the metadata is ready, else 0.",
        lambda m: m.is_ready,
    ),
    Measure(
        "rlm_metadata_not_ready",
        "gauge",
        MetricUnit.FLAG,
        (one_of("reason", *(kind.value for kind in UnreadyReason)),),
        "1 while the metadata is not ready for this reason, else 0.",
        lambda m: [((kind.value,), kind.value == m.not_ready) for kind in UnreadyReason],
    ),
    _gauge(
        "rlm_metadata_lag_events",
        MetricUnit.COUNT,
        "Records of the metadata topic that are not applied yet.",
        lambda m: m.lag_events_count,
    ),
    Measure(
        "rlm_metadata_position",
        "gauge",
        MetricUnit.OFFSET,
        (any_of("metadata_partition", "a partition of the metadata topic"),),
        "Next offset to apply, for each metadata partition that the process follows.",
        lambda m: [((str(partition),), offset) for partition, offset in m.positions.items()],
    ),
    _gauge(
        "rlm_metadata_partitions_catching_up",
        MetricUnit.COUNT,
        "Followed metadata partitions about which the process cannot answer queries yet.",
        lambda m: m.catching_up_count,
    ),
    _gauge(
        "rlm_metadata_newer_records",
        MetricUnit.COUNT,
        "Records that only a newer version of `rlm` can read. The process decides nothing about "
        "their subjects.",
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
        "Bytes of memory with changes that the cache has not written to its tables yet.",
        lambda m: m.write_buffer_bytes,
    ),
)
