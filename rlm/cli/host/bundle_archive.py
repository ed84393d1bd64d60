"""Writes the parts of a debug bundle into one archive, without secrets.

Memory: one part, and its copy without secrets. Before compression, the archive contains at most
PART_MAX_BYTES of a part, and TOTAL_MAX_BYTES of all parts. A part that was cut ends with a note.
All members are in one folder with the name of the archive, so that extracting them replaces no file
of the current directory. The last member, MANIFEST, lists the other members with their sizes, and
the errors of missing parts.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rlm.config.effective import SecretMask
from rsm.segment.errors import InvalidConfigError, TieredStorageError

PART_MAX_BYTES = 16 << 20
TOTAL_MAX_BYTES = 64 << 20
MANIFEST = "manifest.txt"
_MODE = 0o600

Part = Callable[[], bytes]
"""Returns a part's content. Raises TieredStorageError or OSError if it cannot be obtained."""


class BundleArchive:
    """Represents a new `.tar.gz` file, which only its owner can read. Not thread-safe."""

    def __init__(self, path: Path, secrets: Mapping[str, str]) -> None:
        """Create the file. `secrets` are the values to mask, by their keys.

        Raises InvalidConfigError if the file exists or cannot be written.
        """
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            raise InvalidConfigError(
                "cannot create the archive: the file exists",
                file=path,
                advice="Give another --out",
            ) from None
        except OSError as error:
            raise InvalidConfigError(
                "cannot create the archive",
                file=path,
                reason=error.strerror,
                advice="Give a path in a writable directory as --out",
            ) from error
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")  # noqa: SIM115 - see close
        self._folder = _folder(path.name)
        self._created_s = int(os.fstat(descriptor).st_mtime)
        self._mask = SecretMask(secrets)
        self._left_bytes = TOTAL_MAX_BYTES
        self.contents: list[str] = []

    def add(self, name: str, part: Part) -> None:
        """Add a part; if it cannot be obtained, add its error as `NAME.error.txt`."""
        try:
            content = part()
        except (TieredStorageError, OSError) as error:
            self._write(f"{name}.error.txt", f"{error}\n".encode(), note=f"not obtained: {error}")
            return
        self._write(name, content)

    def close(self) -> None:
        """Add the manifest, and finish the archive."""
        self._add_member(MANIFEST, "".join(f"{line}\n" for line in self.contents).encode())
        self._tar.close()
        self._file.close()

    def _write(self, name: str, content: bytes, *, note: str = "") -> None:
        # Masking comes before cutting: it would not recognize a truncated secret.
        content = self._mask.masked(content)
        most_bytes = min(PART_MAX_BYTES, self._left_bytes)
        if len(content) > most_bytes:
            cut = f"(cut after {most_bytes} of {len(content)} bytes)"
            content = content[:most_bytes] + f"\n{cut}\n".encode()
        self._left_bytes = max(0, self._left_bytes - len(content))
        self._add_member(name, content)
        line = f"{name}  {len(content)} bytes" + (note and f"  {note}")
        self.contents.append(self._mask.masked(line.encode()).decode())

    def _add_member(self, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(f"{self._folder}/{name}")
        member.size, member.mode, member.mtime = len(content), _MODE, self._created_s
        self._tar.addfile(member, io.BytesIO(content))


def _folder(archive: str) -> str:
    for suffix in (".tar.gz", ".tgz"):
        if archive.endswith(suffix) and archive != suffix:
            return archive.removesuffix(suffix)
    return f"{archive}-content"  # The folder must not have the archive's name.
