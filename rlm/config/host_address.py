"""What a host name or address says by itself, without a look-up. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

_LOOPBACK_NAMES = frozenset(
    {"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"}
)


def is_loopback(host: str) -> bool:
    """Whether each host finds itself there. Of names, those that mean it on every host."""
    name = host.lower().removesuffix(".")
    if name in _LOOPBACK_NAMES or name.endswith(".localhost"):  # the latter: RFC 6761
        return True
    address = _address_of(host)
    return address is not None and address.is_loopback


def is_unspecified(host: str) -> bool:
    """Whether it is a wildcard: an address to listen on, and none to connect to."""
    address = _address_of(host)
    return address is not None and address.is_unspecified


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address, of IPv4 also where it is written as one of IPv6; None for a name."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
