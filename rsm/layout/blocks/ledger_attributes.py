"""Builds and checks the user metadata of an offloaded ledger's objects (PIP-17). Pure.

The encoder writes lower-case keys, as Pulsar does. The decoder accepts any case, because some
stores change it. Like Pulsar, it refuses an object without this format version.
Source: Pulsar's DataBlockUtils.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rsm.segment.errors import CorruptError

VERSION_KEY = "s3managedledgeroffloaderformatversion"
VERSION = "1"
SOFTWARE_VERSION_KEY = "s3managedledgeroffloadersoftwareversion"
ROLE_KEY = "role"


class Role(Enum):
    """Lists the roles of an offloaded ledger's objects."""

    DATA = "data"
    INDEX = "index"


def ledger_attributes(role: Role | None, extra: Mapping[str, str]) -> dict[str, str]:
    """Return an object's user metadata: the extra attributes, the role and the format version."""
    attributes = {key.lower(): value for key, value in extra.items()}
    if role is not None:
        attributes[ROLE_KEY] = role.value
    attributes[VERSION_KEY] = VERSION
    return attributes


def check_attributes(attributes: Mapping[str, str], *, name: str) -> None:
    """Raise CorruptError unless the object `name` has this format version."""
    found = {key.lower(): value for key, value in attributes.items()}.get(VERSION_KEY)
    if found != VERSION:
        raise CorruptError(
            f"the user metadata lacks {VERSION_KEY}"
            if found is None
            else "the format version is unknown",
            object=name,
            position="user metadata",
            expected=VERSION,
            found="nothing" if found is None else found,
        )
