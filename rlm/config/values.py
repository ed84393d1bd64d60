"""Defines the types of configuration values other than numbers and plain text.

Each parser converts the text from the file. It raises ValueError with the expected form, as
pydantic requires.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rlm.config.host_address import is_loopback, is_unspecified
from rsm.config.values import TOPIC_NAME_RULE, is_topic_name, split_list

_HOST_PORT = re.compile(r"(?:\[([0-9a-fA-F:.%a-z]+)\]|([^\s:/\[\],]+)):([0-9]{1,5})")
_HOST_NAME = re.compile(r"(?=.{1,243}$)[a-zA-Z0-9-]{1,63}(\.[a-zA-Z0-9-]{1,63})*")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
UNLIMITED_BYTES_PER_SECOND = 2**63 - 1  # Kafka's default for its quotas (KIP-956)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPort:
    """Represents a host and a TCP port. For port 0, a listener gets a port from the system."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether every host reaches itself at this address."""
        return is_loopback(self.host)

    @property
    def is_unspecified(self) -> bool:
        """Return whether the host is a wildcard, to which no client can connect."""
        return is_unspecified(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str) -> HostPort:
    """Parse `host:port` or `[address]:port`. Raises ValueError."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        raise ValueError("host:port, with a port up to 65535")
    return HostPort(host=match[1] or match[2], port=int(match[3]))


def _parse_listener(value: object) -> object:
    return parse_host_port(value) if isinstance(value, str) else value


def _parse_optional_listener(value: object) -> object:
    return None if value == "" else _parse_listener(value)


def _parse_node_addresses(value: object) -> object:
    if not isinstance(value, str):
        return value
    addresses: dict[int, HostPort] = {}
    for part in split_list(value):
        node, _, address = part.partition("=")
        if not (node.isascii() and node.isdigit()) or int(node) in addresses:
            raise ValueError("node id=host:port[,node id=host:port…], each node id once")
        addresses[int(node)] = parse_host_port(address)
    return addresses


def _check_advertised(value: HostPort) -> HostPort:
    if value.port == 0 or value.is_unspecified:
        raise ValueError("a host name or address that other hosts reach, with a port above 0")
    return value


def _check_each_advertised(value: Mapping[int, HostPort]) -> Mapping[int, HostPort]:
    for address in value.values():
        _check_advertised(address)
    return value


def _check_distinct(value: Mapping[int, HostPort]) -> Mapping[int, HostPort]:
    chosen = [address for address in value.values() if address.port != 0]
    if len(set(chosen)) < len(chosen):
        raise ValueError("a different address for each node id")
    return value


def _parse_bootstrap_servers(value: object) -> object:
    if not isinstance(value, str):
        return value
    servers = tuple(map(parse_host_port, split_list(value)))
    if not servers or any(server.port == 0 for server in servers):
        raise ValueError("host:port[,host:port…], with ports from 1 to 65535")
    return servers


def _parse_directories(value: object) -> object:
    if not isinstance(value, str):
        return value
    directories = tuple(map(Path, split_list(value)))
    if not directories:
        raise ValueError("a comma-separated list of directories")
    return directories


def _parse_tls_versions(value: object) -> object:
    if not isinstance(value, str):
        return value
    versions = tuple(split_list(value))
    if not versions or not set(versions) <= set(TLS_VERSIONS):
        raise ValueError(f"one or more of {', '.join(TLS_VERSIONS)}, comma-separated")
    return versions


def _check_name_template(value: str) -> str:
    name = value.replace("{node}", "0")
    if value.count("{node}") != 1 or _HOST_NAME.fullmatch(name) is None:
        raise ValueError("a host name that contains {node} once")
    return value


def _check_topic_name(value: str) -> str:
    if not is_topic_name(value):
        raise ValueError(f"a topic name: {TOPIC_NAME_RULE}")
    return value


BootstrapServers = Annotated[tuple[HostPort, ...], BeforeValidator(_parse_bootstrap_servers)]
Listener = Annotated[HostPort, BeforeValidator(_parse_listener)]
OptionalListener = Annotated[HostPort | None, BeforeValidator(_parse_optional_listener)]
AdvertisedListener = Annotated[Listener, AfterValidator(_check_advertised)]
_NodeMap = Annotated[Mapping[int, HostPort], BeforeValidator(_parse_node_addresses)]
NodeAddresses = Annotated[_NodeMap, AfterValidator(_check_each_advertised)]
NodeListeners = Annotated[_NodeMap, AfterValidator(_check_distinct)]
Directories = Annotated[tuple[Path, ...], BeforeValidator(_parse_directories)]
ServerNameTemplate = Annotated[str, AfterValidator(_check_name_template)]
TlsVersions = Annotated[tuple[str, ...], BeforeValidator(_parse_tls_versions)]
TopicName = Annotated[str, AfterValidator(_check_topic_name)]
# At least two heartbeats fit into the 15 s after which a gateway counts as gone.
HeartbeatMs = Annotated[int, Field(ge=1, le=7_500)]
