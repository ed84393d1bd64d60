"""The user metadata of an offloaded ledger's objects (PIP-17): the format's version, and more.

Keys are lower case, as Pulsar writes them; they are read in any case, for some stores change it.
Pulsar refuses an object without the version, and so does this. Pure.
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
    """Which of a ledger's two objects it is."""

    DATA = "data"
    INDEX = "index"


def ledger_attributes(role: Role | None, extra: Mapping[str, str]) -> dict[str, str]:
    """What an object is stored with: the extra metadata, its role and the version."""
    attributes = {key.lower(): value for key, value in extra.items()}
    if role is not None:
        attributes[ROLE_KEY] = role.value
    attributes[VERSION_KEY] = VERSION
    return attributes


def check_attributes(attributes: Mapping[str, str], *, name: str) -> None:
    """Return if the object `name` says that it is of this version; CorruptError if not."""
    found = {key.lower(): value for key, value in attributes.items()}.get(VERSION_KEY)
    if found != VERSION:
        raise CorruptError(
            f"user metadata without {VERSION_KEY}" if found is None else "another format version",
            object=name,
            position="user metadata",
            expected=VERSION,
            found="nothing" if found is None else found,
        )
