"""Fresh ids that are the same in every run."""

from __future__ import annotations

from itertools import count
from uuid import UUID


class CountedIds:
    """Ids 1, 2, 3, ...; one source for a whole world, so that no two are equal."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> UUID:
        return UUID(int=next(self._numbers))
