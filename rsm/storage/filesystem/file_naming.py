"""Links and unlinks the names of a file store's chunks, in a crash-safe order.

    publish   attributes durable as pending -> chunk linked -> attributes linked -> parents synced
    remove    attributes -> pending attributes -> chunk -> parents synced

As soon as its own name is linked, the chunk exists together with its attributes
(rsm.storage.filesystem.sidecar).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rsm.segment.errors import AlreadyExistsError, InvalidConfigError, RetriableError
from rsm.storage.attribute_text import attributes_to_json
from rsm.storage.filesystem.incoming import Incoming, IncomingFile
from rsm.storage.filesystem.sidecar import owner_path, sidecar_path
from rsm.storage.filesystem.store_root import StoreRoot

# An attempt fails when another caller removes the empty directory before the link.
_LINK_ATTEMPTS = 16


class FileNaming:
    """Creates and removes the names of a store's chunks. Thread-safe. All methods raise OSError."""

    def __init__(self, root: StoreRoot, incoming: Incoming) -> None:
        self._root = root
        self._incoming = incoming
        # Locked while names change, never while bytes are written or synced.
        self._lock = threading.Lock()

    def check_free(self, path: Path, name: str) -> None:
        """Check that a chunk can be created at `path`.

        Raises AlreadyExistsError if the chunk exists. Raises InvalidConfigError if another chunk's
        attribute file has this name, or if another chunk has the name of this chunk's attribute
        file.
        """
        owner = owner_path(path)
        if owner is not None and owner.is_file():
            raise InvalidConfigError(
                "the chunk name is invalid: it is that of another chunk's attribute file",
                name=name,
                chunk=owner.name,
            )
        # A chunk is linked before its attributes, so a reader of the attributes finds the chunk.
        sidecar = sidecar_path(path)
        is_sidecar_there = sidecar.exists()
        if path.is_dir():
            raise IsADirectoryError
        if path.is_symlink() or path.exists():
            raise AlreadyExistsError("the chunk already exists", name=name)
        if is_sidecar_there:
            raise InvalidConfigError(
                "cannot create the chunk: another chunk has the name of its attribute file",
                name=name,
                chunk=sidecar.name,
            )

    def prepare_attributes(self, file: IncomingFile, attributes: Mapping[str, str]) -> None:
        """Write pending attributes durably, before the chunk gets its name."""
        pending = self._incoming.attributes_path(file.inode)
        # An older file with the same inode number may have left its attributes here.
        pending.unlink(missing_ok=True)
        with os.fdopen(self._root.access.create(pending), "wb") as stream:
            stream.write(attributes_to_json(attributes))
            stream.flush()
            os.fsync(stream.fileno())
        self._incoming.sync()

    def publish(self, file: IncomingFile, path: Path, name: str) -> None:
        """Link the names of the file and of its prepared attributes; both are durable on return.

        After an error neither name exists, unless the file system also refuses the unlink. Raises
        the errors of `check_free`, and RetriableError if the directory disappears repeatedly.
        """
        with self._lock:
            self.check_free(path, name)
            self._link(file, path, name)
            try:
                self._link_attributes(file, path)
            except OSError:
                self._remove(path, file.inode)
                raise
        try:
            self._root.sync_parents(path)
        except OSError:
            self.remove(path, file.inode)
            raise

    def remove(self, path: Path, inode: int) -> None:
        """Unlink a chunk and its attributes; durable only after `sync_parents`."""
        with self._lock:
            self._remove(path, inode)

    def _remove(self, path: Path, inode: int) -> None:
        sidecar_path(path).unlink(missing_ok=True)
        self._incoming.attributes_path(inode).unlink(missing_ok=True)
        path.unlink()

    def _link(self, file: IncomingFile, path: Path, name: str) -> None:
        for _ in range(_LINK_ATTEMPTS):
            with suppress(FileNotFoundError):
                self._root.make_parents(path)
                try:
                    path.hardlink_to(file.path)
                except FileExistsError as error:
                    raise AlreadyExistsError("the chunk already exists", name=name) from error
                return
            self._root.verify()
        raise RetriableError(
            "cannot create the chunk: its directory or its incoming file disappeared", name=name
        )

    def _link_attributes(self, file: IncomingFile, path: Path) -> None:
        pending = self._incoming.attributes_path(file.inode)
        with suppress(FileNotFoundError):
            sidecar_path(path).hardlink_to(pending)
