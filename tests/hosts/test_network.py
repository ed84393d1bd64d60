"""The virtual hosts themselves, without Kafka: the other tests here rely on these properties."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm.process.local_address import local_address_towards
from tests.hosts.network import HostNetwork
from tests.hosts.operator_config import SHORT_TIMES, host_configuration, readme_example, setting
from tests.hosts.reachability import connect, identity, write_file

_CLOSED_PORT = 9


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostNetwork]:
    with HostNetwork(tmp_path_factory.mktemp("network"), hosts=2) as network:
        yield network


def test_host_when_its_link_is_down_then_is_lost_until_it_is_up_again(network: HostNetwork) -> None:
    first, second = network.hosts
    found = [second.call(connect, host="broker1", port=_CLOSED_PORT)]

    with network.without(first):
        found.append(second.call(connect, host="broker1", port=_CLOSED_PORT))
        found.append(first.call(connect, host="127.0.0.1", port=_CLOSED_PORT))
    found.append(second.call(connect, host="broker1", port=_CLOSED_PORT))

    assert found == ["refused", "lost", "refused", "refused"]


def test_hosts_when_compared_then_each_is_another_and_knows_no_host_names(
    network: HostNetwork,
) -> None:
    first, second = network.hosts
    identities = [host.call(identity) for host in network.hosts]

    assert [each["name"] for each in identities] == [first.host_name, second.host_name]
    assert identities[0]["network"] != identities[1]["network"]
    assert second.call(connect, host=first.host_name, port=_CLOSED_PORT) == "unknown"


def test_files_when_written_then_the_store_is_shared_and_the_rest_each_hosts_own(
    network: HostNetwork,
) -> None:
    first, second = network.hosts
    first.call(write_file, path="/mnt/shared", text="1")
    first.call(write_file, path="/var/lib/own", text="1")

    assert second.outside("/mnt/shared").read_text() == "1"
    assert first.outside("/var/lib/own").read_text() == "1"
    assert not second.outside("/var/lib/own").exists()


def test_readme_example_when_given_to_a_host_then_only_its_own_name_differs() -> None:
    text = host_configuration("broker3", SHORT_TIMES)

    assert setting(text, "bootstrap.servers") == "broker1:9092,broker2:9092"
    assert setting(text, "log.dirs") == "/var/lib/kafka/data"
    assert readme_example().startswith("# rlm.properties")
    assert "broker1" not in text.replace(setting(text, "bootstrap.servers"), "")


def test_address_when_taken_towards_the_hosts_own_name_then_other_hosts_reach_it(
    network: HostNetwork,
) -> None:
    """A manager listens at this address and registers it: its broker advertises the name."""
    first, second = network.hosts

    found = first.call(local_address_towards, host="broker1", port=_CLOSED_PORT)

    assert second.call(connect, host=found, port=_CLOSED_PORT) == "refused"
    assert found != second.call(local_address_towards, host="broker2", port=_CLOSED_PORT)
