"""The dead-letter topic in memory."""

from __future__ import annotations

from rlm.broker.dead_letters.dead_letter_topic import DeadLetterTopic
from rlmm.dead_letters.dead_letter import DeadLetter


class MemoryDeadLetters(DeadLetterTopic):
    """Keeps all dead letters in the order of their arrival."""

    def __init__(self) -> None:
        self.published: list[DeadLetter] = []

    def publish(self, dead_letter: DeadLetter) -> None:
        self.published.append(dead_letter)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
