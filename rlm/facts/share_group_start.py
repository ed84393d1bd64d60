"""Represents the offset from which a share group (KIP-932) reads, or why it is hidden. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rsm.segment.errors import RetriableError


class HiddenShareGroupsError(RetriableError):
    """Reports that a broker may omit share groups, because Describe on the cluster is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStart:
    """Represents the first offset of a partition whose record a share group may still need.

    `offset` is -1 while the cluster has recorded no start. Before the group's first
    acknowledgement, only the partition's leader knows the start, although members may already have
    acquired records.
    """

    group: str
    offset: int
