"""Identifies this host and its own addresses.

Two processes are on the same host if they share a loopback interface: they run on the same boot of
a kernel, in the same network namespace. Containers on one machine usually differ in the namespace.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path

from rlm.policy.peers.other_hosts import HostIdentity
from rsm.segment.clock import Clock

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NETWORK_NAMESPACE = Path("/proc/self/ns/net")
_RESOLVED_FOR_MS = 60_000
_KNOWN_HOSTS_MAX_COUNT = 1_000


def read_host_identity(
    boot_id: Path = _BOOT_ID, network_namespace: Path = _NETWORK_NAMESPACE
) -> HostIdentity:
    """Return this process's host; values that the kernel does not show are empty."""
    try:
        boot = boot_id.read_text().strip()
    except OSError:
        boot = ""
    try:
        namespace = str(network_namespace.readlink())
    except OSError:
        namespace = ""
    return HostIdentity(boot_id=boot, network_namespace=namespace)


def is_own_address(address: str) -> bool:
    """Return whether an interface of this host has the IP address; loopback always counts.

    Binds a socket, so the result applies to this process's network namespace. With
    net.ipv4.ip_nonlocal_bind, the kernel binds any address, so every address counts as own.
    """
    parsed = ip_address(address.partition("%")[0])
    if parsed.is_loopback:
        return True
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    try:
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def resolve(host: str) -> frozenset[str]:
    """Resolve a host name to its IP addresses; empty if it has none now. May wait for DNS."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(str(each[4][0]) for each in found)


class OwnAddresses:
    """Represents a cache of whether host names resolve to this host. Not thread-safe.

    Resolves a name at most once a minute; a name that no longer resolves keeps its last result.
    Forgets all names when their number would exceed 1,000.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        resolve: Callable[[str], frozenset[str]] = resolve,
        is_own: Callable[[str], bool] = is_own_address,
    ) -> None:
        self._clock = clock
        self._resolve = resolve
        self._is_own = is_own
        self._known: dict[str, tuple[int, bool | None]] = {}

    def has(self, host: str) -> bool | None:
        """Return whether any address of `host` is this host's; None if no lookup has succeeded."""
        now_ms = self._clock.monotonic_ms()
        asked_ms, known = self._known.get(host, (None, None))
        if asked_ms is not None and now_ms - asked_ms < _RESOLVED_FOR_MS:
            return known
        addresses = self._resolve(host)
        if addresses:
            known = any(map(self._is_own, addresses))
        if host not in self._known and len(self._known) >= _KNOWN_HOSTS_MAX_COUNT:
            self._known.clear()
        self._known[host] = (now_ms, known)
        return known
