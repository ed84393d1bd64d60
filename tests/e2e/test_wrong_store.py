"""An unmounted store looks like an empty directory: the manager does nothing with it."""

from __future__ import annotations

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.waiting import wait_until

_KEEP_LOCAL = -1


def test_store_when_it_is_not_mounted_then_not_ready_and_nothing_is_copied_or_trimmed(
    host: BrokerHost, log: TieredLog
) -> None:
    """The manager notices it while it runs, and when it starts."""
    log.produce(4)
    away = host.store.with_name("unmounted")
    with host.metadata() as metadata:
        with host.running():
            host.wait_ready()
            log.set_policy(metadata, local_retention_ms=_KEEP_LOCAL)
            wait_until(lambda: len(log.finished(metadata)) == 4, describe="four segments stored")
            host.store.rename(away)
            host.store.mkdir()
            _wait_reported(host, "Look for a missing mount")
            log.produce(1)
        with host.running():
            _wait_reported(host, "It is another store, or it is not mounted")
            log.set_policy(metadata)
            log.produce(1)
            _wait_reported(host, "It is another store, or it is not mounted")
            local_start = log.local_start_offset()
            copied_meanwhile = list(host.store.rglob("*.log"))
            stored_meanwhile = len(log.finished(metadata))

        host.store.rmdir()
        away.rename(host.store)
        with host.running():
            wait_until(lambda: len(log.finished(metadata)) == 6, describe="six segments stored")
            host.wait_ready()

    assert local_start == 0
    assert copied_meanwhile == []
    assert stored_meanwhile == 4
    assert len(list(host.store.rglob("*.log"))) == 6


def _wait_reported(host: BrokerHost, reason: str) -> None:
    wait_until(
        lambda: reason in str(host.readiness()[1]),
        describe=lambda: f"not ready for the store: {host.readiness()}",
    )
