"""Defines the errors of all layers: one root, and a subclass for each reaction of a caller.

Each error has its context as fields (`error.context["partition"]`). Its text, one line, says what
failed, why, where, and how to fix it:

    manager cannot be reached: Connection refused (broker_id=3). Check rest.listener of that host.

Code that converts an error of an SDK or a protocol chains the original with `raise … from`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_REASON = "reason"
_ADVICE = "advice"


class TieredStorageError(Exception):
    """Represents an error that `rlm` raises on purpose; the root of the other classes.

    `message` contains no values; `context` identifies the objects. Two names are
    reserved: `reason` says why, as a text or as the causing error; `advice` says what to
    do, as a sentence without its full stop. **Security:** logs and terminals show the message and
    the context, so never put a secret in them.
    """

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context: Mapping[str, object] = context

    def __str__(self) -> str:
        chain = tuple(self._with_reasons())
        whys = (_text(each.context.get(_REASON)) for each in chain)
        text = ": ".join((*(each.message for each in chain), *filter(None, whys)))
        fields = dict.fromkeys(
            f"{name}={value}" for each in chain for name, value in each._fields()
        )
        if fields:
            text += f" ({', '.join(fields)})"
        advice = next(filter(None, (each.context.get(_ADVICE) for each in chain)), None)
        return text if advice is None else f"{text}. {advice}."

    def _with_reasons(self) -> Iterator[TieredStorageError]:
        """Yield this error and its reasons, until a reason is not an error of `rlm`."""
        error: object = self
        while isinstance(error, TieredStorageError):
            yield error
            error = error.context.get(_REASON)

    def _fields(self) -> Iterator[tuple[str, object]]:
        return (pair for pair in self.context.items() if pair[0] not in (_REASON, _ADVICE))


def _text(reason: object) -> str:
    """Return the text of a reason; an empty string if the reason is an error of `rlm`."""
    if reason is None or isinstance(reason, TieredStorageError):
        return ""
    if isinstance(reason, OSError) and reason.strerror and reason.filename is None:
        return reason.strerror  # `str(reason)` would add the error's number.
    return str(reason) or (type(reason).__name__ if isinstance(reason, Exception) else "")


class RetriableError(TieredStorageError):
    """The failure is temporary, for example a timeout: the same call may succeed later."""


class NotFoundError(TieredStorageError):
    """The requested object does not exist."""


class AlreadyExistsError(TieredStorageError):
    """The object to create already exists; nothing was changed."""


class FencedError(TieredStorageError):
    """The caller lost ownership of the partition: stop, decide nothing, do not retry."""


class StoppedError(TieredStorageError):
    """The work was given up on purpose: end it now, report no failure, and do not retry it.

    For example, the process stops, a setting has changed, records are leased, or the user did not
    confirm. The next cycle, process or command decides again.
    """


class CorruptError(TieredStorageError):
    """Bytes violate their format or checksum: never serve or store them."""


class UnsupportedError(TieredStorageError):
    """This version, feature or combination is not supported; a retry does not help."""


class InvalidConfigError(TieredStorageError):
    """The user's input is invalid; the context names it, for example by `key` and `found`."""


class HostNotReadyError(InvalidConfigError):
    """A setting is valid, but the host is not ready for it yet; a disk may not be mounted.

    A command ends with exit code 1, so that systemd starts it again.
    """
