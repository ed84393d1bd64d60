"""Defines the topic where the manager records repeatedly failed deletions, for repair jobs.

The manager publishes a dead letter before it marks the segment as dead-lettered. A crash in between
causes a second dead letter, which needs no repair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rlmm.dead_letters.dead_letter import DeadLetter


class DeadLetterTopic(ABC):
    """Represents the dead-letter topic. Thread-safe."""

    @abstractmethod
    def publish(self, dead_letter: DeadLetter) -> None:
        """Write a dead letter durably. Raises RetriableError if the write is not confirmed."""

    @abstractmethod
    def close(self) -> None:
        """Flush and disconnect. Idempotent."""
