"""Whether a store has what it was handed. Pure."""

from __future__ import annotations

from rsm.segment.errors import CorruptError


def require_stored(name: str, what: str, *, stored: int, handed_over: int) -> None:
    """Return if the store has as many bytes, or bytes of the checksum, that it was handed.

    Raises CorruptError if not; `what` says which of them.
    """
    if stored != handed_over:
        raise CorruptError(
            "the store has other bytes than it was handed",
            key=name,
            differs=what,
            stored=stored,
            handed_over=handed_over,
        )
