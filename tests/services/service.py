"""What a server that a test starts has in common with the others: it runs within a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Service(ABC):
    """Started when its block begins, gone when that ends, however it does."""

    @abstractmethod
    def start(self) -> None:
        """Return when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it, once it was started."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
