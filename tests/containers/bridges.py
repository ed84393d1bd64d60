"""Bridges of Podman's networks keep their hardware address.

By itself a bridge takes the address of one of its ports, so the address changes when containers
start and end. Other containers send to the old address for some ten seconds. Meanwhile the
network's name server, which is at the bridge, does not answer them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_INTERFACES = Path("/sys/class/net")
_SET_BY_USER = "3"  # NET_ADDR_SET of the kernel


def keep_bridge_addresses() -> None:
    """Set the address that each of Podman's bridges has now, so that it stays. Needs root."""
    for bridge in _INTERFACES.glob("podman*"):
        try:
            assigned = (bridge / "addr_assign_type").read_text().strip()
            address = (bridge / "address").read_text().strip()
        except FileNotFoundError:  # the network was removed
            continue
        if assigned != _SET_BY_USER:
            change = ["ip", "link", "set", "dev", bridge.name, "address", address]
            subprocess.run(change, check=False, capture_output=True)
