"""Which host this is, and which addresses are its own."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rlm.policy.peers.other_hosts import HostIdentity
from rlm.process.host_identity import (
    OwnAddresses,
    is_own_address,
    read_host_identity,
    resolve,
)
from tests.fakes.clock import FakeClock


def test_identity_when_the_kernel_shows_it_then_is_of_this_boot_and_namespace() -> None:
    found = read_host_identity()

    assert found == read_host_identity()
    assert len(found.boot_id) == len("00000000-0000-0000-0000-000000000000")
    assert found.network_namespace == str(Path("/proc/self/ns/net").readlink())


def test_identity_when_the_kernel_hides_it_then_is_not_known(tmp_path: Path) -> None:
    assert read_host_identity(tmp_path / "none", tmp_path / "none") == HostIdentity()


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.9.8.7", True),
        ("::1", True),
        ("192.0.2.1", False),  # RFC 5737: no host has it
        ("2001:db8::1", False),  # RFC 3849
        ("fe80::1%nosuch0", False),
    ],
)
def test_address_when_looked_up_then_is_own_if_an_interface_has_it(
    address: str, *, is_own: bool
) -> None:
    assert is_own_address(address) is is_own


def test_addresses_of_this_hosts_interfaces_when_looked_up_then_are_own() -> None:
    """The addresses that the kernel lists."""
    lines = Path("/proc/net/fib_trie").read_text().splitlines()
    local = {
        before.split()[-1] for before, line in itertools.pairwise(lines) if "/32 host LOCAL" in line
    }

    assert local
    assert all(map(is_own_address, local))


def test_name_when_it_has_no_address_then_resolves_to_none() -> None:
    assert resolve("no-such-host.invalid") == frozenset()
    assert resolve("127.0.0.1") == {"127.0.0.1"}
    assert resolve("x" * 300) == frozenset()


class Names:
    """Resolves names as set, and counts the calls."""

    def __init__(self) -> None:
        self.addresses: dict[str, frozenset[str]] = {}
        self.asked = 0

    def resolve(self, host: str) -> frozenset[str]:
        self.asked += 1
        return self.addresses.get(host, frozenset())


def test_name_when_any_address_is_of_this_host_then_leads_here() -> None:
    names = Names()
    names.addresses = {"here": frozenset({"192.0.2.1", "127.0.0.1"}), "there": frozenset({"::2"})}
    own = OwnAddresses(FakeClock(), resolve=names.resolve, is_own=lambda each: each == "127.0.0.1")

    assert (own.has("here"), own.has("there"), own.has("nowhere")) == (True, False, None)


def test_name_when_it_was_resolved_a_moment_ago_then_is_not_asked_again() -> None:
    clock, names = FakeClock(), Names()
    names.addresses = {"there": frozenset({"192.0.2.1"})}
    own = OwnAddresses(clock, resolve=names.resolve)

    assert [own.has("there") for _ in "12"] == [False, False]
    assert names.asked == 1
    clock.advance(60_000)
    own.has("there")
    assert names.asked == 2


def test_name_when_it_no_longer_resolves_then_keeps_its_last_answer() -> None:
    """A DNS outage does not mean that the cluster has changed."""
    clock, names = FakeClock(), Names()
    names.addresses = {"there": frozenset({"192.0.2.1"})}
    own = OwnAddresses(clock, resolve=names.resolve)
    own.has("there")

    names.addresses = {}
    clock.advance(60_000)

    assert own.has("there") is False
