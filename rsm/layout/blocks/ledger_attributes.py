"""The user metadata of an offloaded ledger's objects (PIP-17), such as the format's version.

The encoder writes lower-case keys, as Pulsar does. The decoder accepts any case, because some
stores change it. Like Pulsar, it refuses an object without this version. Pure.
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
    """The role of one of a ledger's two objects."""

    DATA = "data"
    INDEX = "index"


def ledger_attributes(role: Role | None, extra: Mapping[str, str]) -> dict[str, str]:
    """Return an object's user metadata: the extra attributes, its role and the version."""
    attributes = {key.lower(): value for key, value in extra.items()}
    if role is not None:
        attributes[ROLE_KEY] = role.value
    attributes[VERSION_KEY] = VERSION
    return attributes


def check_attributes(attributes: Mapping[str, str], *, name: str) -> None:
    """Check that the object `name` has this format version. Raises CorruptError."""
    found = {key.lower(): value for key, value in attributes.items()}.get(VERSION_KEY)
    if found != VERSION:
        raise CorruptError(
            f"the user metadata lacks {VERSION_KEY}"
            if found is None
            else "the object has another format version",
            object=name,
            position="user metadata",
            expected=VERSION,
            found="nothing" if found is None else found,
        )
