"""Checks that a store has the bytes that were sent to it. Pure."""

from __future__ import annotations

from rsm.segment.errors import CorruptError


def require_stored(name: str, what: str, *, stored: int, sent: int) -> None:
    """Check the length or the checksum that the store reports; `what` says which.

    Raises CorruptError if it differs from the length or checksum of the bytes sent.
    """
    if stored != sent:
        raise CorruptError(
            "the stored bytes differ from the written bytes",
            key=name,
            differs=what,
            stored=stored,
            sent=sent,
        )
