"""Leaders move and brokers stop while clients read both tiers through the gateways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.three_brokers.bounds_asker import asking_for_bounds
from tests.e2e.three_brokers.leaders import move_leaders
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of
from tests.e2e.three_brokers.written_topic import WrittenTopic


def test_readers_when_all_leaders_move_while_they_read_then_read_every_record_once_in_order(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    with paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers:
        hosts.cluster.restore_leaders()
        before = written.leaders()
        move_leaders(hosts.cluster, written)
        assert all(before[number] != leader for number, leader in written.leaders().items())

        assert_read_all(readers, written)


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_readers_when_a_broker_stops_and_comes_back_then_read_every_record_once_in_order(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path, killed: bool
) -> None:
    """The readers continue while the broker is away; others start when it is back.

    R15: leaders of the metadata topic move, too, and no client sees a shorter log meanwhile.
    """
    gone = broker_of(hosts.cluster, written.leaders()[0])
    with (
        paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers,
        asking_for_bounds(hosts.bootstrap_servers, written),
        hosts.cluster.without(gone, killed=killed),
    ):
        written.wait_led_without(gone)
        assert_read_all(readers, written)

    with paused_readers(hosts.bootstrap_servers, written, tmp_path) as readers:
        assert_read_all(readers, written)
