"""The errors of all layers: one root, one child for each thing a caller can do next.

Every error carries its context as fields (`error.context["partition"]`), and prints it behind
its message, so that one line says what happened, where, and to what. Whoever maps an SDK's or
a protocol's error into one of these chains the original with `raise … from`.
"""

from __future__ import annotations

from collections.abc import Mapping


class TieredStorageError(Exception):
    """Root of all errors that this product raises on purpose.

    `message` is constant text; `context` names what it happened to. Never put a secret in either.
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
    """Failed for now: the same call may succeed later (timeout, unreachable, throttled)."""


class NotFoundError(TieredStorageError):
    """What was asked for is not there."""


class AlreadyExistsError(TieredStorageError):
    """What was to be created is there already; nothing was changed."""


class FencedError(TieredStorageError):
    """The caller no longer owns what it acts on: give up, decide nothing, do not retry."""


class CorruptError(TieredStorageError):
    """Bytes are not what their format or checksum says: never serve or store them."""


class UnsupportedError(TieredStorageError):
    """This version, feature or combination is not supported here; a retry will not help."""


class InvalidConfigError(TieredStorageError):
    """What the user gave is wrong: say which key, what was found, and what is expected."""
