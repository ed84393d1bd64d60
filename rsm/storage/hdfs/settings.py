"""The settings of a directory in HDFS."""

from __future__ import annotations

from dataclasses import dataclass

from rsm.storage.uploads.leftovers import IDLE_MAX_AGE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsSettings:
    """A directory and its name nodes. `namenode_urls`: http(s)://host:port of each name node.

    The client finds the active name node. `root` is an absolute path that exists. `user` is the
    name for simple authentication. `timeout_ms` limits connecting, sending, each wait for data, and
    the whole body of a response. Unfinished files that HDFS closed more than `leftover_max_age_ms`
    ago are removed.
    """

    namenode_urls: tuple[str, ...]
    root: str
    user: str
    timeout_ms: int = 30_000
    leftover_max_age_ms: int = IDLE_MAX_AGE_MS
