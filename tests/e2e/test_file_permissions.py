"""Other users of the host cannot read the files that `rlm run` creates."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports


def test_run_when_the_umask_is_the_usual_one_then_other_users_can_not_read_what_it_makes(
    host: BrokerHost, log: TieredLog, tmp_path: Path
) -> None:
    """Stored records, the metadata cache with all of its files, and the gateway's cache."""
    (port,) = free_ports(1)
    cache = tmp_path / "chunk-cache"
    host.set(
        **{
            "gateway.listener": f"127.0.0.1:{port}",
            "rsm.config.fetch.chunk.cache.path": str(cache),
        }
    )
    host.store.chmod(0o755)
    before = os.umask(0o022)
    try:
        with host.metadata() as metadata:
            log.set_policy(metadata)
            log.produce(2)
            with host.running():
                host.wait_ready()
                log.wait_tiered(metadata)
    finally:
        os.umask(before)

    made = [path for each in (host.store, host.state_dir, cache) for path in each.rglob("*")]
    made += [host.state_dir, cache]
    assert {path.parts[len(tmp_path.parts)] for path in made} == {"store", "state", "chunk-cache"}
    assert [path for path in made if path.stat().st_mode & 0o007] == []
