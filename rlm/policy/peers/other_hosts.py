"""Finds processes and brokers of the cluster that are not on this process's host.

A loopback address is right for clients and commands only while the whole cluster is on one host.
Here, a host is the scope of one loopback interface: one boot of a kernel, and one network
namespace.

| evidence | another host |
| --- | --- |
| a live registration | its boot id or network namespace differs from this process's |
| a broker | no interface of this host has the address that it advertises |

Unknown values are no evidence: a registration of version 0.1.0 has neither id, and a broker's name
may not resolve. The broker of this process, and that broker's other processes, count as on this
host, whatever address the broker advertises. So does a broker that advertises a loopback address:
that address reaches only this host.

Pure: the caller passes the registrations and the resolved addresses of the brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rlmm.events.registration import NO_BROKER, ProcessRegistered, Registration
from rlmm.registration import is_live


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIdentity:
    """Represents the host of a process by two ids; an id is empty if it is not known."""

    boot_id: str = ""
    network_namespace: str = ""

    def differs_from(self, other: HostIdentity) -> bool:
        """Return whether the two hosts are known to differ."""
        return _differ(self.boot_id, other.boot_id) or _differ(
            self.network_namespace, other.network_namespace
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedBroker:
    """Represents a live broker, its advertised address, and whether this host has that address.

    `is_own_address` is None if the address cannot be resolved.
    """

    broker_id: int
    address: str
    is_own_address: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherHost:
    """Represents a process or broker on another host, with its display name and its address."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} at {self.address}" if self.address else self.name


def other_hosts(
    own: HostIdentity,
    *,
    broker_id: int,
    registrations: Iterable[Registration],
    brokers: Iterable[AdvertisedBroker],
    broker_time_ms: int,
) -> tuple[OtherHost, ...]:
    """Return brokers and processes that are not on `own`, the host of a process of `broker_id`.

    `broker_id` is NO_BROKER for a process of the whole cluster. Returns brokers first, by ascending
    id; empty if no other host is known.
    """
    elsewhere = [
        OtherHost(name=f"broker {each.broker_id}", address=each.address)
        for each in sorted(brokers, key=lambda broker: broker.broker_id)
        if each.is_own_address is False and each.broker_id != broker_id
    ]
    processes = [
        each.process
        for each in registrations
        if is_live(each, broker_time_ms)
        and (each.process.broker_id == NO_BROKER or each.process.broker_id != broker_id)
        and _host_of(each.process).differs_from(own)
    ]
    processes.sort(key=lambda each: (each.broker_id, each.role.value, each.process_id))
    return (*elsewhere, *map(_described, processes))


def _host_of(process: ProcessRegistered) -> HostIdentity:
    return HostIdentity(boot_id=process.boot_id, network_namespace=process.network_namespace)


def _described(process: ProcessRegistered) -> OtherHost:
    role = process.role.name.lower()
    of = "of no broker" if process.broker_id == NO_BROKER else f"of broker {process.broker_id}"
    return OtherHost(name=f"{role} {of}", address=process.gateway_address or process.http_address)


def _differ(one: str, other: str) -> bool:
    return bool(one) and bool(other) and one != other
