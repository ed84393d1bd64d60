"""Represents the settings of a directory in HDFS."""

from __future__ import annotations

from dataclasses import dataclass

from rsm.storage.uploads.leftovers import IDLE_MAX_AGE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsSettings:
    """Represents a directory and its NameNodes.

    `namenode_urls` contains the http(s)://host:port of each NameNode; the client finds the active
    one. `root` is an absolute path that exists. `user` is the name for simple authentication.
    `timeout_ms` limits connecting, each wait to send or receive, and the whole body of a response.
    A writer removes unfinished files that HDFS closed more than `leftover_max_age_ms` ago.
    """

    namenode_urls: tuple[str, ...]
    root: str
    user: str
    timeout_ms: int = 30_000
    leftover_max_age_ms: int = IDLE_MAX_AGE_MS
