"""Classifies a host name or address without a lookup. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

_LOOPBACK_NAMES = frozenset(
    {"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"}
)


def is_loopback(host: str) -> bool:
    """Return whether every host reaches itself at this name or address."""
    name = host.lower().removesuffix(".")
    if name in _LOOPBACK_NAMES or name.endswith(".localhost"):  # RFC 6761 reserves .localhost.
        return True
    address = _address_of(host)
    return address is not None and address.is_loopback


def is_unspecified(host: str) -> bool:
    """Return whether the host is a wildcard address.

    A socket can listen on a wildcard, but no client can connect to it.
    """
    address = _address_of(host)
    return address is not None and address.is_unspecified


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address, in IPv4 form if it is IPv4-mapped IPv6; None for a name."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
