"""Decides the address that a manager registers for commands on other hosts.

A command on any host sends its requests to the registered address. On another host, a loopback
address leads to another manager or to none. So a manager registers a loopback address only if the
cluster has no other host.

Does no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm.config.values import HostPort
from rlm.policy.peers.other_hosts import OtherHost

ADVERTISED_KEY = "rest.advertised.listener"
LISTENER_KEY = "rest.listener"
_OTHERS_NAMED_COUNT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerAddress:
    """Represents the decision; exactly one of `registered` and `problem` is empty."""

    registered: str
    problem: str = ""


def manager_address(
    *,
    advertised: HostPort | None,
    bound: HostPort,
    towards_broker: str,
    others: Sequence[OtherHost],
) -> ManagerAddress:
    """Decide the registered address of a manager that listens at `bound`.

    `advertised` is the setting, and takes precedence over `bound`. `towards_broker` is the IP
    address from which this host connects to its broker. It replaces a wildcard in `bound`. `others`
    are the cluster's other hosts.
    """
    reached = bound
    if bound.is_unspecified:
        reached = HostPort(host=towards_broker, port=bound.port)
    found = advertised or reached
    if not found.is_loopback or not others:
        return ManagerAddress(registered=str(found))
    named = ", ".join(map(str, others[:_OTHERS_NAMED_COUNT]))
    if advertised is not None:
        setting, fix = f"{ADVERTISED_KEY}={found}", f"Set {ADVERTISED_KEY}"
    elif bound.is_loopback and towards_broker != bound.host:
        setting, fix = f"{LISTENER_KEY}={bound}", f"Remove {LISTENER_KEY}, or set it"
    else:
        setting, fix = f"address={found}", f"Set {LISTENER_KEY}"
    return ManagerAddress(
        registered="",
        problem=(
            "commands on other hosts cannot reach this manager: its address is a loopback "
            f"address, and the cluster has another host ({setting} other_host={named}). {fix} "
            "to an address of this host that other hosts can reach."
        ),
    )
