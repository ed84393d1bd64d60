"""Represents where a share group (KIP-932) starts to read, or why that is hidden. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rsm.segment.errors import RetriableError


class HiddenShareGroupsError(RetriableError):
    """A broker may omit share groups from its responses. An operator can grant the right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStart:
    """Represents the offset from which a group has records left.

    `offset` is -1 while no start is recorded. Before the group's first acknowledgement, only the
    partition's leader knows the start, although members may already have acquired records.
    """

    group: str
    offset: int
