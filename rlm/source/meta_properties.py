"""Whose log dirs these are: the broker's identity as its log dirs' `meta.properties` tell it.

Owns which log dirs have to tell, and that they agree; what the file looks like is for
`rsm.segment.checkpoints` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rsm.segment.checkpoints import parse_meta_properties
from rsm.segment.errors import CorruptError, InvalidConfigError, UnsupportedError

META_PROPERTIES_FILE = "meta.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """One broker of one cluster; `cluster_id` as Kafka prints it."""

    node_id: int
    cluster_id: str


def read_broker_identity(log_dirs: Sequence[Path]) -> BrokerIdentity:
    """Read whose log dirs these are.

    A log dir without the file, or on a disk that fails, says nothing: the broker formats a new
    one, and does without a failed one, when others tell who it is. Raises InvalidConfigError if a
    log dir is missing or must not be read, if a file cannot be understood, if two are of different
    brokers or clusters (naming both), or if none tells.
    """
    identities: dict[Path, BrokerIdentity] = {}
    for log_dir in log_dirs:
        identity = _read(log_dir)
        if identity is not None:
            identities[log_dir] = identity
    if not identities:
        raise InvalidConfigError(
            f"no log dir has a {META_PROPERTIES_FILE}: not a broker's, or not yet formatted",
            log_dirs=",".join(map(str, log_dirs)),
        )
    first_dir, first = next(iter(identities.items()))
    for log_dir, identity in identities.items():
        if identity != first:
            raise InvalidConfigError(
                "log dirs of different brokers",
                **{str(first_dir): _describe(first), str(log_dir): _describe(identity)},
            )
    return first


def _read(log_dir: Path) -> BrokerIdentity | None:
    if not log_dir.is_dir():
        raise InvalidConfigError("log dir does not exist", log_dir=log_dir)
    path = log_dir / META_PROPERTIES_FILE
    try:
        content = path.read_bytes()
    except PermissionError as error:
        raise InvalidConfigError("log dir must be readable", path=path) from error
    except OSError:
        return None
    try:
        properties = parse_meta_properties(content, file=str(path))
    except (CorruptError, UnsupportedError) as error:
        raise InvalidConfigError(error.message, **error.context) from error
    return BrokerIdentity(node_id=properties.node_id, cluster_id=properties.cluster_id)


def _describe(identity: BrokerIdentity) -> str:
    return f"node {identity.node_id} of cluster {identity.cluster_id}"
