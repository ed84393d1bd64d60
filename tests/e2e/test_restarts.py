"""State that survives restarts of the broker, of `rlm`, or of both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog, assert_readable
from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until


@pytest.fixture(scope="module")
def kafka(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """A separate broker, because these tests restart it."""
    with services.kafka(tmp_path_factory.mktemp("restarted")) as cluster:
        yield cluster


def _epochs(log: TieredLog, metadata: RemoteLogMetadataManager) -> list[int]:
    lineage = metadata.partition_state(log.partition).lineage
    return [entry.epoch for entry in lineage.entries]


def test_lineage_when_trimmed_and_all_restarted_then_old_segments_still_match(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    """Scenario 82; R5: after a trim only the stored lineage has the early epochs.

    Each clean start of the broker begins an epoch, and a short loss of its connection may, too.
    """
    for _ in range(2):
        log.produce(1)
        kafka.restart(kafka.broker)
    log.produce(2)
    produced = log.files()
    with host.metadata() as metadata:
        log.set_policy(metadata)
        with host.running():
            log.wait_tiered(metadata)
        before, epochs = log.finished(metadata), _epochs(log, metadata)
        owner = metadata.partition_state(log.partition).owner
    assert len(epochs) >= 2
    assert {each.segment_leader_epochs.entries[0].epoch for each in before} == set(epochs)

    kafka.restart(kafka.broker)
    log.produce(1)  # its copy shows that a whole cycle has run
    with host.metadata() as metadata, host.running():
        log.wait_tiered(metadata)

        state = metadata.partition_state(log.partition)
        assert state.owner != owner
        now = _epochs(log, metadata)
        assert now[: len(epochs)] == epochs
        assert log.finished(metadata)[: len(before)] == before
        assert not log.in_states(metadata, SegmentState.DELETE_SEGMENT_FINISHED)
        at_the_broker = [int(line.split()[0]) for line in _checkpoint(log)]
        assert 0 < len(at_the_broker) < len(now)
        assert at_the_broker == now[-len(at_the_broker) :]
    originals = {each.base_offset: each.content for each in produced}
    for segment in before:
        assert log.stored_content(segment) == originals[segment.offsets.start_offset]


def _checkpoint(log: TieredLog) -> list[str]:
    """Return the entries of the broker's own leader-epoch checkpoint."""
    return (log.directory / "leader-epoch-checkpoint").read_text().splitlines()[2:]


def test_copying_when_broker_restarts_then_continues(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog
) -> None:
    """Scenario 11: the broker stops while segments are being copied, and comes back."""
    log.produce(6)
    with host.metadata() as metadata, host.running() as process:
        log.set_policy(metadata, local_retention_ms=-1)
        wait_until(lambda: log.finished(metadata), interval_s=0.005, describe="a segment is stored")

        kafka.broker.kill()
        kafka.restart(kafka.broker)
        log.produce(1)
        log.set_policy(metadata)
        produced = log.files()
        log.wait_tiered(metadata, deadline_s=60.0)

        assert process.exit_code() is None
        assert_readable(log, metadata, produced)
        assert log.segment_keys() == {
            stored.key for segment in log.finished(metadata) for stored in segment.objects
        }


def test_cache_when_lost_then_rebuilt_to_the_same_answers(host: BrokerHost, log: TieredLog) -> None:
    """Scenario 36: the content of the state directory comes from the metadata topic."""
    log.produce(3)
    with host.metadata() as metadata:
        log.set_policy(metadata)
        with host.running():
            log.wait_tiered(metadata)
            before = _settled_report(host, log)
        stored = log.finished(metadata)

        shutil.rmtree(host.state_dir / "manager" / "cache")
        with host.running():
            after = _settled_report(host, log)

        assert after == before
        assert log.finished(metadata) == stored


def _settled_report(host: BrokerHost, log: TieredLog) -> dict[str, object]:
    """Wait until the manager leads and has nothing left to do; return its report."""
    return wait_until(
        lambda: (
            report
            if (report := host.report(log.topic)).get("claimed")
            and report["remote_segments"]
            and not report["lag_segments"]
            and not report["copying"]
            and (report["trim_blocked"] or {}).get("reason") == "newest_rolled_segment"
            else {}
        ),
        describe=lambda: f"a settled report: {host.report(log.topic)}",
    )
