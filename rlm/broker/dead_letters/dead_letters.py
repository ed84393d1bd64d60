"""DeadLetterTopic: where deletions go that kept failing, for repair jobs to finish.

A letter is published before the segment is marked as dead-lettered: a crash between the two makes
a second letter, which a repair job finds done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rlmm.dead_letters.dead_letter import DeadLetter


class DeadLetterTopic(ABC):
    """Takes letters. Thread-safe."""

    @abstractmethod
    def publish(self, dead_letter: DeadLetter) -> None:
        """Write a letter durably. RetriableError if that is not known."""

    @abstractmethod
    def close(self) -> None:
        """Flush and leave; idempotent."""
