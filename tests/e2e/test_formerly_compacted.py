"""A topic that Kafka's cleaner compacted before its cleanup policy became delete."""

from __future__ import annotations

from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.tiered_log import VALUE_BYTES, TieredLog
from tests.services.kafka import admin_client, set_topic_configs
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

_SEGMENTS = 4


def test_log_when_it_was_compacted_once_then_stored_with_its_gaps_and_read_as_before(
    host: BrokerHost, log: TieredLog
) -> None:
    """Scenarios 56 and 65: whole files without a batch, also if the layout cannot store those."""
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}", "rsm.config.layout": "block_v1"})
    admin = admin_client(host.cluster.bootstrap_servers)
    log.produce(_SEGMENTS)  # all have one key, so only the newest below the active segment remains
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    set_topic_configs(admin, log.topic, compacted)
    wait_until(lambda: _is_compacted(log), 60.0, lambda: f"sizes of files: {_sizes(log)}")
    set_topic_configs(admin, log.topic, {"cleanup.policy": "delete"})
    before = read_all(host.cluster.bootstrap_servers, log.topic)

    with host.metadata() as metadata, host.running():
        host.wait_ready()
        log.set_policy(metadata)
        log.wait_tiered(metadata)
        through_gateway = read_all(f"127.0.0.1:{port}", log.topic)
        layouts = {each.segment_size_bytes > 0: each.layout for each in log.finished(metadata)}

    assert through_gateway == before
    assert layouts == {True: "block_v1", False: "raw"}


def _is_compacted(log: TieredLog) -> bool:
    """Return whether the cleaner has removed all but the newest record below the active segment.

    The cleaner replaces one file after the other: others may be empty before the last is done.
    """
    *emptied, last, _active = _sizes(log)
    return len(emptied) == _SEGMENTS - 1 and not any(emptied) and last < 2 * VALUE_BYTES


def _sizes(log: TieredLog) -> list[int]:
    return [len(each.content) for each in log.files()]
