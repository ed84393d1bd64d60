"""Defines the messages for a store's refusals, which all bindings share. Pure."""

from __future__ import annotations

from typing import Final

CREDENTIALS: Final = "the store rejects these credentials: they are expired or unknown to it"
PERMISSION: Final = "the store denies this: a permission is missing"
TOO_MANY: Final = "the store asks for fewer requests"
CHANGED: Final = "the bytes changed in transit to the store"
NO_BUCKET: Final = "the bucket does not exist"
