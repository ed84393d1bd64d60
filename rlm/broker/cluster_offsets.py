"""Fetches the log start, last stable offset and high watermark of partitions from their leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import ClusterView
from rlm.broker.list_offsets import fetch_partition_offsets
from rlm.broker.partition_results import PartitionResults
from rlm.facts.partition_offsets import PartitionOffsets
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_ASKED_AT_ONCE = 8


def fetch_cluster_offsets(
    bootstrap: Bootstrap, view: ClusterView, partitions: Iterable[TopicIdPartition]
) -> PartitionResults[PartitionOffsets]:
    """Fetch the offsets of `partitions` from their leaders in `view`, at most eight at once.

    A partition fails with RetriableError if it has no leader or its leader is unreachable, and with
    the errors of `fetch_partition_offsets`. The result contains these errors; none is raised.
    """
    wanted = frozenset(partitions)
    epochs = {
        node_id: {tip: epoch for tip, epoch in view.led_by(node_id).items() if tip in wanted}
        for node_id in view.brokers
    }
    led = [(node_id, epochs_of) for node_id, epochs_of in epochs.items() if epochs_of]
    with ThreadPoolExecutor(_ASKED_AT_ONCE, "cluster-offsets") as executor:
        responses = list(executor.map(lambda item: _ask(bootstrap, view, *item), led))
    succeeded: dict[TopicIdPartition, PartitionOffsets] = {}
    failed: dict[TopicIdPartition, TieredStorageError] = {}
    for response in responses:
        succeeded.update(response.succeeded)
        failed.update(response.failed)
    for tip in wanted:
        if tip not in succeeded and tip not in failed:
            failed[tip] = RetriableError("the partition has no live leader", partition=tip)
    return PartitionResults(succeeded=succeeded, failed=failed)


def _ask(
    bootstrap: Bootstrap, view: ClusterView, node_id: int, epochs: Mapping[TopicIdPartition, int]
) -> PartitionResults[PartitionOffsets]:
    try:
        with bootstrap.at(view.broker(node_id)) as leader:
            return fetch_partition_offsets(leader, epochs)
    except TieredStorageError as error:
        return PartitionResults(succeeded={}, failed=dict.fromkeys(epochs, error))
