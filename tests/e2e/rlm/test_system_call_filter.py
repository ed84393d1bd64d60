"""`rlm run` works with the system calls that deploy/systemd/rlm.service allows."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.rlm.system_call_filter import allow_only, allowed_calls, filter_count
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports

_UNIT = Path(__file__).resolve().parents[3] / "deploy" / "systemd" / "rlm.service"


def test_run_when_it_may_only_make_the_calls_of_the_unit_then_stores_trims_and_serves(
    host: BrokerHost, log: TieredLog, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    gateway = f"127.0.0.1:{port}"
    cache = tmp_path / "chunk-cache"
    host.set(**{"gateway.listener": gateway, "rsm.config.fetch.chunk.cache.path": str(cache)})

    filtered = partial(allow_only, allowed_calls(_UNIT))
    with ThreadPoolExecutor(max_workers=1, initializer=filtered) as executor:
        filters, offsets = executor.submit(_tier_and_read, host, log, gateway).result()

    assert filters == filter_count(os.getpid()) + 1
    assert offsets == list(range(log.end_offset()))
    assert any(each.is_file() for each in cache.rglob("*"))


def _tier_and_read(host: BrokerHost, log: TieredLog, gateway: str) -> tuple[int, list[int]]:
    """Tier a topic, and read it through the gateway; return the filter count and the offsets."""
    log.produce(2)
    with host.metadata() as metadata:
        log.set_policy(metadata)
        with host.running() as process:
            host.wait_ready()
            log.wait_tiered(metadata)
            return filter_count(process.pid), read_all(gateway, log.topic)
