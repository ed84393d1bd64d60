"""Whose log dirs these are: the broker's identity as its log dirs' `meta.properties` tell it.

Owns the meaning of those files. Version 1 names the broker `node.id`, version 0 (a broker with
ZooKeeper) `broker.id`; both carry `cluster.id`. Source: KIP-631 and
org.apache.kafka.metadata.properties.MetaProperties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from rsm.segment.errors import InvalidConfigError

FILE_NAME = "meta.properties"

_NODE_ID_KEYS = {"0": "broker.id", "1": "node.id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """One broker of one cluster; `cluster_id` as Kafka prints it."""

    node_id: int
    cluster_id: str


def read_broker_identity(log_dirs: Sequence[Path]) -> BrokerIdentity:
    """Read whose log dirs these are.

    A log dir without the file, or on a disk that fails, says nothing: the broker formats a new
    one, and does without a failed one, when others tell who it is. Raises InvalidConfigError if a
    log dir is missing or must not be read, if a file can't be understood, if two are of different
    brokers or clusters (naming both), or if none tells.
    """
    told: dict[Path, BrokerIdentity] = {}
    for log_dir in log_dirs:
        identity = _read(log_dir)
        if identity is not None:
            told[log_dir] = identity
    if not told:
        raise InvalidConfigError(
            f"no log dir has a {FILE_NAME}: not a broker's, or not yet formatted",
            log_dirs=",".join(map(str, log_dirs)),
        )
    first_dir, first = next(iter(told.items()))
    for log_dir, identity in told.items():
        if identity != first:
            raise InvalidConfigError(
                "log dirs of different brokers",
                **{str(first_dir): _describe(first), str(log_dir): _describe(identity)},
            )
    return first


def _read(log_dir: Path) -> BrokerIdentity | None:
    if not log_dir.is_dir():
        raise InvalidConfigError("log dir does not exist", log_dir=log_dir)
    path = log_dir / FILE_NAME
    try:
        text = path.read_text(encoding="iso-8859-1")  # java.util.Properties' own
    except PermissionError as error:
        raise InvalidConfigError("log dir must be readable", path=path) from error
    except OSError:
        return None
    return _parse(text, path)


def _parse(text: str, path: Path) -> BrokerIdentity:
    try:
        properties = javaproperties.loads(text)
    except ValueError as error:
        raise InvalidConfigError("not a properties file", path=path) from error
    version = properties.get("version", "0")
    node_id_key = _NODE_ID_KEYS.get(version)
    if node_id_key is None:
        raise InvalidConfigError("unknown version", path=path, expected="0 or 1", found=version)
    cluster_id = properties.get("cluster.id")
    node_id = properties.get(node_id_key, "")
    if not cluster_id or not (node_id.isascii() and node_id.isdigit()):
        raise InvalidConfigError("needs " + node_id_key + " and cluster.id", path=path)
    return BrokerIdentity(node_id=int(node_id), cluster_id=cluster_id)


def _describe(identity: BrokerIdentity) -> str:
    return f"node {identity.node_id} of cluster {identity.cluster_id}"
