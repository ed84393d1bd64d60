"""Gateways go, come back and move while clients read through them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from tests.clients.reader_programs import READERS_WITH_REBOOTSTRAP
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until


def _gateway_pids(supervisor: ServiceProcess) -> set[int]:
    children = psutil.Process(supervisor.pid).children()
    return {each.pid for each in children if "--gateway-fd" in each.cmdline()}


def test_readers_when_every_gateway_process_is_killed_then_continue_through_the_next_ones(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """The supervisor keeps the port: readers find it, and read every record once, in order."""
    with paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers:
        killed = set().union(*(_gateway_pids(hosts.process(node_id)) for node_id in (1, 2, 3)))
        assert len(killed) == 3
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(psutil.pid_exists, killed)), describe="they are gone")

        assert_read_all(readers, written)


def test_readers_when_a_brokers_gateway_is_away_then_are_held_at_others_until_it_is_back(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """R16: clients are never redirected to the broker, where a trimmed offset ends the read."""
    away = written.leaders()[0]
    others = [node_id for node_id in (1, 2, 3) if node_id != away]
    with paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers:
        hosts.stop(away)
        try:
            led_to = {node_id: hosts.gateway(node_id) for node_id in others}
            led_to[away] = hosts.gateway(others[away % len(others)])
            for asked in others:
                hosts.wait_led_to(led_to, asked=asked)
            for each in readers:
                each.resume()
        finally:
            hosts.start(away)
        for each in readers:
            assert each.reads() == written.expected(), each.reader


def test_readers_when_all_gateways_have_moved_then_begin_again_at_their_bootstrap_servers(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """KIP-899: nobody serves the addresses any longer that a reader had received."""
    new = hosts.new_addresses()
    bootstrap_servers = f"{hosts.bootstrap_servers},{','.join(new.values())}"
    with paused_readers(
        bootstrap_servers, written, tmp_path, readers=READERS_WITH_REBOOTSTRAP
    ) as readers:
        hosts.move_gateways(new)

        assert_read_all(readers, written)
