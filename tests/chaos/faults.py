"""Injects faults into brokers, hosts and the store, one at a time, and repairs each."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random

from tests.chaos.hosts import ChaosHosts
from tests.e2e.three_brokers.three_hosts import broker_of
from tests.services.kafka import KafkaCluster

_BETWEEN_S = 4.0
_BROKER_AWAY_S = 5.0
_BROKER_FROZEN_S = 8.0  # longer than a broker's session, so that other brokers lead meanwhile
_HOST_AWAY_S = 4.0
_HOST_FROZEN_S = 10.0  # longer than a trim's plan stays valid
_STORE_FAILS_S = 15.0


class Faults:
    """Injects faults in turn, on brokers that a seed chooses. Not thread-safe.

    `injected` counts the faults by name.
    """

    def __init__(self, cluster: KafkaCluster, hosts: ChaosHosts, *, seed: int) -> None:
        self._cluster = cluster
        self._hosts = hosts
        self._random = Random(seed)
        self._over = threading.Event()
        self.injected: Counter[str] = Counter()

    def run(self, duration_s: float, *, max_rounds: int | None = None) -> None:
        """Inject faults until the time is over, or each kind was injected `max_rounds` times.

        On return everything is repaired.
        """
        timer = threading.Timer(duration_s, self._over.set)
        timer.start()
        kinds: tuple[Callable[[int], None], ...] = (
            self.kill_host,
            self.freeze_broker,
            self.fail_store,
            self.kill_broker,
            self.freeze_host,
        )
        rounds = count() if max_rounds is None else range(max_rounds)
        try:
            for kind in (kind for _ in rounds for kind in kinds):
                if self._over.wait(_BETWEEN_S):
                    break
                kind(self._random.choice([each.node_id for each in self._cluster.brokers]))
                self.injected[kind.__name__] += 1
        finally:
            timer.cancel()

    def kill_broker(self, node_id: int) -> None:
        """Send SIGKILL, then start it again."""
        broker = broker_of(self._cluster, node_id)
        broker.kill()
        self._over.wait(_BROKER_AWAY_S)
        self._cluster.restart(broker)

    def freeze_broker(self, node_id: int) -> None:
        """Send SIGSTOP, and SIGCONT when other brokers lead."""
        broker = broker_of(self._cluster, node_id)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            self._over.wait(_BROKER_FROZEN_S)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        broker.wait_ready(brokers=len(self._cluster.brokers))

    def kill_host(self, node_id: int) -> None:
        """Send SIGKILL to all processes next to a broker, then start them again."""
        self._hosts.kill(node_id)
        self._over.wait(_HOST_AWAY_S)
        self._hosts.start(node_id)

    def freeze_host(self, node_id: int) -> None:
        """Send SIGSTOP to all processes next to a broker."""
        with self._hosts.frozen(node_id):
            self._over.wait(_HOST_FROZEN_S)

    def fail_store(self, _node_id: int) -> None:
        """Make half of all requests fail: refused, with a lost response, or cut off."""
        self._hosts.fail_store()
        try:
            self._over.wait(_STORE_FAILS_S)
        finally:
            self._hosts.restore_store()
