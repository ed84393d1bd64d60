"""`rlm run` as a user runs it: its end, restarts, refusals, and reasons for not being ready."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from rlmm.topic.shape import CONFIG_PREFIX, TopicSettings
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog, assert_readable
from tests.services.kafka import KafkaCluster, admin_client, set_topic_configs
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

REPLICATION_FACTOR = CONFIG_PREFIX + "replication.factor"


@contextmanager
def _run(host: BrokerHost) -> Iterator[ServiceProcess]:
    """Run `rlm run` until it is ready; the test ends it."""
    with host.started("-m", "rlm", "run", "--config", str(host.config_path)) as process:
        host.wait_ready()
        yield process


def _children(process: ServiceProcess) -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    assert children
    return children


def _runs(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_run_when_terminated_then_ends_in_time_with_all_its_processes(host: BrokerHost) -> None:
    with _run(host) as process:
        children = _children(process)

        assert process.terminate(deadline_s=20.0) == 0

        assert not any(_runs(child) for child in children)


def test_run_when_killed_then_its_processes_end_by_themselves(host: BrokerHost) -> None:
    with _run(host) as process:
        children = _children(process)

        process.kill()

        wait_until(lambda: not any(_runs(child) for child in children), 60.0, "children ended")


def test_run_when_its_manager_is_killed_then_starts_it_again_and_continues(
    host: BrokerHost, log: TieredLog
) -> None:
    """Scenario 10, with the supervisor."""
    with host.metadata() as metadata, _run(host) as process:
        log.set_policy(metadata)
        log.produce(1)
        log.wait_tiered(metadata)
        (manager,) = _children(process)

        manager.kill()
        log.produce(2)
        produced = log.files()
        log.wait_tiered(metadata)

        assert process.exit_code() is None
        assert_readable(log, metadata, produced)


def test_run_when_one_runs_already_then_refuses_and_leaves_it_alone(host: BrokerHost) -> None:
    with _run(host) as process:
        host.set(**{"metrics.listener": "127.0.0.1:0", "rest.listener": "127.0.0.1:0"})

        with host.started("-m", "rlm", "run", "--config", str(host.config_path)) as second:
            assert second.wait(deadline_s=20.0) == 1  # it may start once the first one has ended

        assert process.exit_code() is None
        wait_until(lambda: host.readiness() == (200, []), 60.0, "the first one is ready")


def test_run_when_the_cluster_is_a_foreign_one_then_ends_and_creates_nothing(
    host: BrokerHost, tmp_path: Path
) -> None:
    """The log dirs are those of another cluster than the one that answers."""
    foreign = tmp_path / "foreign-logs"
    foreign.mkdir()
    (foreign / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=1\n")
    host.set(**{"log.dirs": str(foreign)})

    with host.started("-m", "rlm", "run", "--config", str(host.config_path)) as process:
        assert process.wait(deadline_s=30.0) == 2
        lines = process.log_tail().splitlines()

    assert any("another" in line and host.cluster.cluster_id in line for line in lines), lines
    assert not any("Traceback" in line for line in lines)
    assert host.config.metadata.topic_name not in _topics(host.cluster)


def test_run_when_there_are_too_few_brokers_then_is_not_ready_and_names_the_setting(
    host: BrokerHost,
) -> None:
    """Scenario 40: a new metadata topic of three replicas, and one live broker."""
    host.set(**{REPLICATION_FACTOR: "3"})

    with host.started("-m", "rlm", "run", "--config", str(host.config_path)):
        reason = _wait_unready(host)

    assert REPLICATION_FACTOR in reason
    assert host.config.metadata.topic_name not in _topics(host.cluster)


def test_run_when_metadata_topic_has_too_few_replicas_then_is_not_ready(host: BrokerHost) -> None:
    """Scenario 40: an existing metadata topic of one replica where three are wanted."""
    _create_metadata_topic(host)
    host.set(**{REPLICATION_FACTOR: "3"})

    with host.started("-m", "rlm", "run", "--config", str(host.config_path)):
        reason = _wait_unready(host)

    assert REPLICATION_FACTOR in reason


def test_run_when_metadata_topic_is_repaired_then_gets_ready_by_itself(host: BrokerHost) -> None:
    """Scenarios 33 and 40: a metadata topic with `cleanup.policy=delete` would lose records."""
    _create_metadata_topic(host, **{"cleanup.policy": "delete"})

    with host.started("-m", "rlm", "run", "--config", str(host.config_path)):
        reason = _wait_unready(host)
        topic = host.config.metadata.topic_name
        admin = admin_client(host.cluster.bootstrap_servers)  # if collected, it ends requests
        set_topic_configs(admin, topic, {"cleanup.policy": "compact"})
        host.wait_ready()

    assert "cleanup.policy" in reason


def _wait_unready(host: BrokerHost) -> str:
    """Return the reason for not being ready that names a setting of the metadata topic."""

    def reason() -> str:
        code, reasons = host.readiness()
        assert code in {0, 503}
        return next((each for each in reasons if "setting=" in each), "")

    return wait_until(reason, 30.0, lambda: f"a setting is named: {host.readiness()}")


def _create_metadata_topic(host: BrokerHost, **configs: str) -> None:
    metadata = host.config.metadata
    settings = TopicSettings(
        name=metadata.topic_name,
        partition_count=metadata.num_partitions,
        replication_factor=metadata.replication_factor,
    )
    host.cluster.create_topic(
        settings.name,
        partitions=settings.partition_count,
        config={**settings.topic_configs(), **configs},
    )


def _topics(cluster: KafkaCluster) -> set[str]:
    return set(admin_client(cluster.bootstrap_servers).list_topics(timeout=10.0).topics)
