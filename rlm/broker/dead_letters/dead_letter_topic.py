"""DeadLetterTopic: where the manager records deletions that kept failing, for repair jobs.

The manager publishes a dead letter before it marks the segment as dead-lettered. A crash between
the two causes a second dead letter, for which a repair job has nothing to do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rlmm.dead_letters.dead_letter import DeadLetter


class DeadLetterTopic(ABC):
    """Represents the dead-letter topic. Thread-safe."""

    @abstractmethod
    def publish(self, dead_letter: DeadLetter) -> None:
        """Write a dead letter durably; raise RetriableError if that is not confirmed."""

    @abstractmethod
    def close(self) -> None:
        """Flush and disconnect; idempotent."""
