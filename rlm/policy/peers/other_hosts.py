"""Which processes and brokers of the cluster are on another host than this process.

A loopback address is right for clients and commands only while the whole cluster is on one host.
A host here is what one loopback interface belongs to: a kernel's boot and a network namespace.

| evidence | another host |
| --- | --- |
| a live registration | its boot id or network namespace differs from this process's |
| a broker | no interface of this host has the address that it advertises |

What is not known is no evidence: a registration of version 0.1.0 carries neither id, and the name
of a broker may not resolve. The broker that this process runs beside, and that broker's other
processes, are on this host whatever address it advertises. Brokers that advertise a loopback
address are on this host too: nothing else can be reached there.

Pure: registrations, and the addresses of brokers looked up by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rlmm.events.processes import NO_BROKER, ProcessRegistered
from rlmm.registration import is_live
from rlmm.spi import Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIdentity:
    """The host of a process; two with equal ids share a loopback interface. Empty: not known."""

    boot_id: str = ""
    network_namespace: str = ""

    def differs_from(self, other: HostIdentity) -> bool:
        """Whether the two are known to be different hosts."""
        return _differ(self.boot_id, other.boot_id) or _differ(
            self.network_namespace, other.network_namespace
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedBroker:
    """A live broker, the address that it advertises, and whether that is one of this host's.

    `is_own_address` None: its name could not be resolved.
    """

    broker_id: int
    address: str
    is_own_address: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherHost:
    """A process or broker on another host: `name` is for people, `address` where it is found."""

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
    """What is on another host than a process of `broker_id` (NO_BROKER: of none) on `own`.

    Brokers first, each by id; empty while the cluster is on one host as far as it is known.
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
