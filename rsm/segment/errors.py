"""The errors of all layers: one root, and one subclass for each reaction of a caller.

Each error has its context as fields (`error.context["partition"]`) and prints it after the message,
so that one line says what failed, where, and for which object. Code that converts an error of an
SDK or a protocol chains the original with `raise … from`.
"""

from __future__ import annotations

from collections.abc import Mapping


class TieredStorageError(Exception):
    """Root of all errors that rlm raises on purpose.

    `message` is constant text; `context` identifies the objects. Never put a secret in either.
    """

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context: Mapping[str, object] = context

    def __str__(self) -> str:
        if not self.context:
            return self.message
        fields = ", ".join(f"{name}={value}" for name, value in self.context.items())
        return f"{self.message} ({fields})"


class RetriableError(TieredStorageError):
    """A temporary failure: the same call may succeed later (timeout, unreachable, throttled)."""


class NotFoundError(TieredStorageError):
    """The requested object does not exist."""


class AlreadyExistsError(TieredStorageError):
    """The object to create already exists; nothing was changed."""


class FencedError(TieredStorageError):
    """The caller lost ownership of the partition: stop, decide nothing, do not retry."""


class StoppedError(TieredStorageError):
    """The work is given up on purpose: end it now, report no failure, do not retry it as it is.

    The process stops, or a setting that the decision used has changed. The next cycle or the next
    process decides again.
    """


class CorruptError(TieredStorageError):
    """Bytes violate their format or checksum: never serve or store them."""


class UnsupportedError(TieredStorageError):
    """This version, feature or combination is not supported; a retry does not help."""


class InvalidConfigError(TieredStorageError):
    """The user's input is invalid; the context names key, found value and expected value."""
