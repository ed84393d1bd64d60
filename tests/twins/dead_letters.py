"""The dead-letter topic in memory."""

from __future__ import annotations

from rlm.broker.dead_letters.dead_letters import DeadLetterTopic
from rlmm.dead_letters.dead_letter import DeadLetter


class MemoryDeadLetters(DeadLetterTopic):
    """Keeps all letters in the order they came."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    def publish(self, letter: DeadLetter) -> None:
        self.letters.append(letter)

    def close(self) -> None:
        """Nothing is held."""
