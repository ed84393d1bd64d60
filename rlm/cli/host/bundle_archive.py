"""Writes the parts of a debug bundle into one archive, without secrets.

Memory: one part, and its copy without secrets. The archive has at most PART_MAX_BYTES of a part,
and TOTAL_MAX_BYTES of all parts, before compression. A note at the end of a part says where it was
cut.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rlm.config.client_properties import PREFIX
from rlm.config.effective import MASK
from rsm.segment.errors import InvalidConfigError, TieredStorageError

PART_MAX_BYTES = 16 << 20
TOTAL_MAX_BYTES = 64 << 20
_ANYWHERE_MIN_LENGTH = 4
"""A shorter secret is a part of other texts: it is masked only after its key."""
_MODE = 0o600

Part = Callable[[], bytes]
"""Returns a part's content. TieredStorageError or OSError if it cannot be obtained."""


class BundleArchive:
    """A new `.tar.gz` file, which only its owner can read. For one thread; close it."""

    def __init__(self, path: Path, secrets: Mapping[str, str]) -> None:
        """Create the file. `secrets` are the values to mask, by their keys.

        InvalidConfigError if the file exists or cannot be written.
        """
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            raise InvalidConfigError(
                "the file exists and is not replaced", file=path, advice="Give another --out"
            ) from None
        except OSError as error:
            raise InvalidConfigError(
                "cannot write the file",
                file=path,
                reason=error.strerror,
                advice="Give a path in a writable directory as --out",
            ) from error
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")  # noqa: SIM115 - see close
        self._created_s = int(os.fstat(descriptor).st_mtime)
        self._secrets = [*_masked_anywhere(secrets.values()), *_masked_after_keys(secrets)]
        self._left_bytes = TOTAL_MAX_BYTES
        self.contents: list[str] = []

    def add(self, name: str, part: Part) -> None:
        """Add a part; if it cannot be obtained, add its error as `NAME.error.txt`."""
        try:
            content = part()
        except (TieredStorageError, OSError) as error:
            name, content = f"{name}.error.txt", f"{error}\n".encode()
        self._write(name, content)

    def close(self) -> None:
        """Finish the archive."""
        self._tar.close()
        self._file.close()

    def _write(self, name: str, content: bytes) -> None:
        # Secrets first: a truncated one would not be recognized.
        for secret in self._secrets:
            content = secret.sub(rb"\g<before>" + MASK.encode(), content)
        most_bytes = min(PART_MAX_BYTES, self._left_bytes)
        if len(content) > most_bytes:
            note = f"\n(cut after {most_bytes} of {len(content)} bytes)\n"
            content = content[:most_bytes] + note.encode()
        self._left_bytes = max(0, self._left_bytes - len(content))
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = len(content), _MODE, self._created_s
        self._tar.addfile(member, io.BytesIO(content))
        self.contents.append(f"{name}  {len(content)} bytes")


def _masked_anywhere(secrets: Iterable[str]) -> Iterator[re.Pattern[bytes]]:
    """Yield a pattern for each spelling of the secrets that are long enough, the longest first."""
    found = {
        spelled
        for secret in secrets
        if len(secret) >= _ANYWHERE_MIN_LENGTH
        for spelled in _spellings(secret)
    }
    for spelled in sorted(found, key=len, reverse=True):
        yield re.compile(rb"(?P<before>)" + re.escape(spelled))


def _masked_after_keys(secrets: Mapping[str, str]) -> Iterator[re.Pattern[bytes]]:
    """Yield a pattern for each short secret after its key, as in `key=value` or `"key": "value"`.

    The Kafka client names its keys without a prefix.
    """
    for key, secret in secrets.items():
        if len(secret) < _ANYWHERE_MIN_LENGTH:
            name = re.escape(key.removeprefix(PREFIX).encode())
            for spelled in _spellings(secret):
                before = rb"(?P<before>" + name + rb"[\"']?\s*[=:]\s*[\"']?)"
                yield re.compile(before + re.escape(spelled) + rb"(?!\w)")


def _spellings(secret: str) -> frozenset[bytes]:
    """Return a secret as it may be spelled in text or JSON."""
    texts = (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1])
    return frozenset(text.encode() for text in texts)
