"""Messages for the refusals of a store, the same for all bindings. Pure."""

from __future__ import annotations

from typing import Final

CREDENTIALS: Final = "the store rejects these credentials: they expired, or are not its own"
PERMISSION: Final = "the store denies this: a permission is missing"
TOO_MANY: Final = "the store asks for fewer requests"
CHANGED: Final = "bytes changed on their way to the store"
NO_BUCKET: Final = "no such bucket"
