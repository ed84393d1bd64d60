"""Checks that a store has the bytes sent to it. Pure."""

from __future__ import annotations

from rsm.segment.errors import CorruptError


def require_stored(name: str, what: str, *, stored: int, sent: int) -> None:
    """Check a length or a checksum that the store reports; `what` is its name in the error.

    Raises CorruptError if it differs from that of the sent bytes.
    """
    if stored != sent:
        raise CorruptError(
            "the stored bytes differ from the written bytes",
            key=name,
            differs=what,
            stored=stored,
            sent=sent,
        )
