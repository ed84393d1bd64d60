"""What tells a directory of HDFS."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsSettings:
    """`namenode_urls`: http(s)://host:port of each name node; the active one is found.

    `root` is an absolute path that exists. `user` is the name of simple authentication.
    `timeout_ms` bounds each step of a request: connect, send, wait, and an answer's whole body.
    """

    namenode_urls: tuple[str, ...]
    root: str
    user: str
    timeout_ms: int = 30_000
    leftover_max_age_ms: int = 3_600_000
