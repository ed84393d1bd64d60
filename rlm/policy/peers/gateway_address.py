"""Decides whether clients may get the address that a gateway advertises.

Clients on any host connect to the address that they get for a broker. So they must not get

- a loopback address while the cluster has another host: on that host, the address reaches another
  gateway, or none;
- an address that a live gateway of another broker advertises: the address reaches one of the two,
  and the partitions of the other broker are unavailable.

Of two gateways with one address, the one that registered later yields. If both registered before
either saw the other, both processes find that the gateway of the higher broker id yields. The
processes of one gateway share its address, and so does an earlier gateway of the same broker.

Gateways of the whole cluster may share an address, for example that of a load balancer. If such a
gateway listens on a loopback address, only clients on its host connect, and they reach it there.

Pure: the caller passes the registrations and the brokers' time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rlm.policy.peers.gateways import live_gateways
from rlm.policy.peers.other_hosts import OtherHost
from rlmm.events.registration import NO_BROKER, ProcessRegistered, Registration

_OTHERS_NAMED_COUNT = 3
_FIXED_KEY = "gateway.node.addresses"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnGateway:
    """Represents this gateway. `address` is a host:port, and `key` is the key that sets it.

    `is_loopback`: each host reaches itself at `address`. `has_loopback_listener`: only clients on
    this host can connect. `fixed_loopback`: the first loopback entry of `gateway.node.addresses`;
    empty if it has none.
    """

    broker_id: int
    address: str
    key: str
    is_loopback: bool
    has_loopback_listener: bool
    fixed_loopback: str = ""


def address_problem(
    own: OwnGateway,
    *,
    registrations: Iterable[Registration],
    others: Iterable[OtherHost],
    broker_time_ms: int,
) -> str | None:
    """Return why clients must not get the address, and which key to change; None if they may.

    `others` are the processes and brokers on other hosts (rlm.policy.peers.other_hosts).
    """
    elsewhere = tuple(others)
    if elsewhere and not _has_local_clients_only(own):
        named = ", ".join(map(str, elsewhere[:_OTHERS_NAMED_COUNT]))
        if own.is_loopback:
            return (
                "cannot accept clients: the gateway advertises a loopback address, and the "
                f"cluster has another host ({own.key}={own.address} other_host={named}). "
                f"{_advice(own)}"
            )
        if own.fixed_loopback:
            return (
                "cannot accept clients: the gateway would give them a loopback address, and the "
                f"cluster has another host ({_FIXED_KEY}={own.fixed_loopback} other_host={named}). "
                f"Set {_FIXED_KEY} to addresses at which clients on other hosts reach the brokers."
            )
    rival = _first_rival(own, live_gateways(registrations, broker_time_ms))
    if rival is None:
        return None
    return (
        "cannot accept clients: a live gateway of another broker advertises the same address "
        f"({own.key}={own.address} broker_id={rival.broker_id}). "
        "Give each broker's gateway a different address. " + _advice(own)
    )


def _has_local_clients_only(own: OwnGateway) -> bool:
    return own.broker_id == NO_BROKER and own.has_loopback_listener


def _advice(own: OwnGateway) -> str:
    if own.key == "gateway.listener":
        return (
            "Set gateway.listener to this host's own address, or to 0.0.0.0 with "
            "gateway.advertised.listener as the address that clients reach."
        )
    return f"Set {own.key} to the address at which clients on other hosts reach this gateway."


def _first_rival(own: OwnGateway, live: Iterable[ProcessRegistered]) -> ProcessRegistered | None:
    """Return the gateway of the lowest broker id that this one yields to; None if it need not."""
    if own.broker_id == NO_BROKER:
        return None
    processes = tuple(live)
    is_registered = any(
        each.broker_id == own.broker_id and _advertises(each, own.address) for each in processes
    )
    rivals = [
        each
        for each in processes
        if each.broker_id not in (NO_BROKER, own.broker_id)
        and _advertises(each, own.address)
        and (not is_registered or each.broker_id < own.broker_id)
    ]
    return min(rivals, key=lambda each: each.broker_id, default=None)


def _advertises(process: ProcessRegistered, address: str) -> bool:
    return process.gateway_address.lower() == address.lower()
