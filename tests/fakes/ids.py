"""Fresh ids that are the same in every run."""

from __future__ import annotations

from itertools import count
from uuid import UUID


class CountedIds:
    """Ids 1, 2, 3, ...; one source for a whole world, so that no two are equal.

    Several sources begin at numbers far enough apart.
    """

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def __call__(self) -> UUID:
        return UUID(int=next(self._numbers))
