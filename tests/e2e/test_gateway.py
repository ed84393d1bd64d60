"""A gateway as a user starts it: a plain consumer reads what the broker no longer has."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition

from rlmm.events.registration import ProcessRole, registrations
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports


@pytest.fixture
def gateway(host: BrokerHost) -> str:
    """The address of the gateway that `rlm run` will start."""
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    return f"127.0.0.1:{port}"


def _end_offset(log: TieredLog, host: BrokerHost) -> int:
    """Return the end offset that the broker itself reports."""
    consumer = Consumer({"bootstrap.servers": host.cluster.bootstrap_servers, "group.id": "-"})
    with closing(consumer):
        _, high = consumer.get_watermark_offsets(TopicPartition(log.topic, 0), timeout=30.0)
    return high


def test_gateway_when_the_log_was_trimmed_then_a_plain_consumer_reads_it_whole(
    host: BrokerHost, log: TieredLog, gateway: str
) -> None:
    """Scenario 41: every record once and in order, and through gateways only (R16)."""
    with host.metadata() as metadata:
        log.set_policy(metadata)
        log.produce(4)
        with host.running():
            host.wait_ready()
            log.wait_tiered(metadata)
            assert log.local_start_offset() > 0

            assert read_all(gateway, log.topic) == list(range(_end_offset(log, host)))

            registered = [
                r.process for r in registrations(metadata) if r.process.role is ProcessRole.GATEWAY
            ]
            assert [process.gateway_address for process in registered] == [gateway]
            assert registered[0].applied


def test_gateway_when_its_port_is_taken_then_run_refuses_with_one_line(
    host: BrokerHost, gateway: str
) -> None:
    address, _, port = gateway.rpartition(":")
    with closing(socket.create_server((address, int(port)))):
        command = [sys.executable, "-m", "rlm", "run", "--config", str(host.config_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)

    (line,) = done.stderr.splitlines()
    assert done.returncode == 1  # the port may be free later
    assert "gateway.listener" in line
