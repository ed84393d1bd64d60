"""The hosts of a chaos run, which tests can kill and freeze, and whose store can fail."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.services.kafka import KafkaCluster

TRIM_MIN_AGE_MS = 20_000  # the witness, which reads from brokers, must be faster than a trim


class ChaosHosts(ThreeHosts):
    """`rlm run` next to each broker; half of the store's requests fail while a file exists."""

    def __init__(self, directory: Path, cluster: KafkaCluster) -> None:
        super().__init__(directory, cluster)
        self._failing = directory / "store-fails"
        for host in self._hosts.values():
            host.set(
                **{
                    "remote.local.trim.min.age.ms": str(TRIM_MIN_AGE_MS),
                    "rsm.config.storage.faulty.fail.share": "0.5",
                    "rsm.config.storage.faulty.while.file": str(self._failing),
                }
            )

    def kill(self, node_id: int) -> None:
        """End a host's processes by SIGKILL."""
        self._processes.pop(node_id).kill(children=True)
        with contextlib.suppress(AssertionError):  # the process must not end cleanly
            self._running.pop(node_id).close()

    def fail_store(self) -> None:
        """Make half of the requests to the store fail from now on."""
        self._failing.touch()

    def restore_store(self) -> None:
        """Make the store answer correctly again."""
        self._failing.unlink(missing_ok=True)
