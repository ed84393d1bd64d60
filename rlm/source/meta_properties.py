"""Identifies the broker that owns log dirs, from their `meta.properties`.

Decides which log dirs must have the file, and compares them; `rsm.segment.checkpoints` parses it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm.source.denied_access import denied_access
from rsm.segment.checkpoints import parse_meta_properties
from rsm.segment.errors import (
    CorruptError,
    HostNotReadyError,
    InvalidConfigError,
    UnsupportedError,
)

META_PROPERTIES_FILE = "meta.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """Represents one broker of one cluster; `cluster_id` is as Kafka prints it."""

    node_id: int
    cluster_id: str


def read_broker_identity(log_dirs: Sequence[Path]) -> BrokerIdentity:
    """Read the identity of the broker that owns these log dirs.

    Ignores a log dir without the file or on a failed disk if another log dir identifies the broker:
    the broker formats new log dirs and runs without failed ones. Raises InvalidConfigError if this
    user may not read a log dir, if a file is malformed, or if two log dirs belong to different
    brokers or clusters. Raises HostNotReadyError if a log dir is missing, or if none has the
    file.
    """
    identities: dict[Path, BrokerIdentity] = {}
    for log_dir in log_dirs:
        identity = _read(log_dir)
        if identity is not None:
            identities[log_dir] = identity
    if not identities:
        raise HostNotReadyError(
            f"cannot identify the broker: no log dir has a readable {META_PROPERTIES_FILE}",
            log_dirs=",".join(map(str, log_dirs)),
            advice="rlm can start once the broker has formatted one. Otherwise check the disks, or "
            "correct log.dirs",
        )
    first_dir, first = next(iter(identities.items()))
    for log_dir, identity in identities.items():
        if identity != first:
            raise InvalidConfigError(
                "cannot identify the broker: the log dirs belong to different brokers",
                **{str(first_dir): _describe(first), str(log_dir): _describe(identity)},
                advice="Name only log dirs of one broker in log.dirs",
            )
    return first


def _read(log_dir: Path) -> BrokerIdentity | None:
    path = log_dir / META_PROPERTIES_FILE
    try:
        if not log_dir.is_dir():
            raise HostNotReadyError(
                "cannot read the log directory: it does not exist",
                log_dir=log_dir,
                advice="rlm can start once it is mounted. Otherwise correct log.dirs",
            )
        with os.scandir(log_dir):  # This fails if rlm cannot list the directory.
            content = path.read_bytes()
    except PermissionError as error:
        raise _unreadable(log_dir, error) from error
    except OSError:
        return None
    try:
        properties = parse_meta_properties(content, file=str(path))
    except (CorruptError, UnsupportedError) as error:
        raise InvalidConfigError(error.message, **error.context) from error
    return BrokerIdentity(node_id=properties.node_id, cluster_id=properties.cluster_id)


def _unreadable(log_dir: Path, error: PermissionError) -> InvalidConfigError:
    rights = f"u:{os.geteuid()}:rX"
    return InvalidConfigError(
        "cannot read the log directory",
        key="log.dirs",
        found=log_dir,
        **denied_access(Path(error.filename)),
        reason=error.strerror,
        advice="Add this user to the group of the broker's files, or run "
        f"`setfacl -R -m {rights},d:{rights} {log_dir}` as root",
    )


def _describe(identity: BrokerIdentity) -> str:
    return f"node {identity.node_id} of cluster {identity.cluster_id}"
