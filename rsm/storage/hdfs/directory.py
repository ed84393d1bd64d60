"""Reads and changes files below the root of a store in HDFS, and converts errors.

The store never creates the root. A missing file counts as absent only while the root exists.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from rsm.segment.errors import (
    InvalidConfigError,
    NotFoundError,
    RetriableError,
)
from rsm.storage.attribute_text import attributes_from_base64, attributes_to_base64
from rsm.storage.hdfs.errors import ABSENT, store_error
from rsm.storage.hdfs.listing import Entry
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.hdfs.webhdfs import RemoteError, WebHdfs
from rsm.storage.names import check_name

INCOMING = ".incoming"
_RECOVERY_PAUSE_S = 0.05
_ATTRIBUTES = "user.rlm.attributes"


class HdfsDirectory:
    """Represents the root directory. Thread-safe. Opening sends no request."""

    def __init__(self, web: WebHdfs, settings: HdfsSettings) -> None:
        self.web = web
        self._root = settings.root.rstrip("/")

    def path(self, name: str) -> str:
        """Return the path of the chunk `name`, existing or not. Raises InvalidConfigError."""
        check_name(name)
        if name.split("/", maxsplit=1)[0] == INCOMING or ":" in name:
            raise InvalidConfigError(
                "the chunk name is invalid: it contains a colon, or begins with `.incoming/`",
                name=name,
            )
        return f"{self._root}/{name}"

    def incoming_path(self, name: str = "") -> str:
        """Return the path of an incoming file; if `name` is empty, that of their directory."""
        return f"{self._root}/{INCOMING}/{name}".rstrip("/")

    def verify(self) -> None:
        """Check that the root exists. Raises RetriableError."""
        try:
            status = self.web.ask("GET", self._root or "/", "GETFILESTATUS")["FileStatus"]
        except RemoteError as error:
            if error.name in ABSENT:
                raise RetriableError(
                    "cannot find the store's root",
                    root=self._root,
                    advice="Create the directory: rlm does not",
                ) from error
            raise store_error(error, self._root) from error
        if status["type"] != "DIRECTORY":
            raise RetriableError("the store's root is not a directory", root=self._root)

    def check_access(self) -> None:
        """Implement ChunkStorage.check_access."""
        self.verify()
        try:
            self.web.ask("GET", self._root or "/", "CHECKACCESS", fsaction="rwx")
        except RemoteError as error:
            raise store_error(error, self._root) from error

    def status(self, name: str) -> Mapping[str, Any]:
        """Return the file status of a chunk. Raises NotFoundError, also for a directory."""
        with self.reading(name):
            status: Mapping[str, Any] = self.web.ask("GET", self.path(name), "GETFILESTATUS")[
                "FileStatus"
            ]
        if status["type"] != "FILE":
            raise NotFoundError("the object is not in the store", name=name)
        return status

    def await_closed(self, name: str, timeout_ms: int) -> None:
        """Wait until HDFS has recovered the chunk's last block.

        Raises RetriableError after `timeout_ms`.
        """
        deadline_s = time.monotonic() + timeout_ms / 1000
        while True:
            with self.reading(name):
                if not self._is_open(self.path(name)):
                    return
            if time.monotonic() > deadline_s:
                raise RetriableError("HDFS is still recovering the chunk", name=name)
            time.sleep(_RECOVERY_PAUSE_S)

    def is_idle(self, path: str, *, since_ms: int) -> bool:
        """Return whether a file was closed before `since_ms`; False if HDFS does not answer.

        HDFS closes the file of a dead writer. It sets a file's modification time only when it
        creates and when it closes the file, so the time says nothing about an open file.
        """
        with suppress(RemoteError, RetriableError, KeyError):
            if not self._is_open(path):
                status = self.web.ask("GET", path, "GETFILESTATUS")["FileStatus"]
                return bool(status["modificationTime"] < since_ms)
        return False

    def _is_open(self, path: str) -> bool:
        """Return whether a writer has the file open. Raises RemoteError, RetriableError."""
        blocks = self.web.ask("GET", path, "GET_BLOCK_LOCATIONS")["LocatedBlocks"]
        return bool(blocks["isUnderConstruction"])

    def set_attributes(self, path: str, attributes: Mapping[str, str]) -> None:
        """Set the attributes of a file that has none. Raises RemoteError."""
        value = "0s" + attributes_to_base64(attributes)
        parameters = {"xattr.name": _ATTRIBUTES, "xattr.value": value, "flag": "CREATE"}
        self.web.ask("PUT", path, "SETXATTR", **parameters)

    def attributes(self, name: str) -> Mapping[str, str]:
        """Return a chunk's attributes.

        Raises CorruptError unless they are a JSON object of strings.
        """
        with self.reading(name):
            found = self.web.ask("GET", self.path(name), "GETXATTRS", encoding="base64")
        for attribute in found.get("XAttrs", ()):
            if attribute["name"] == _ATTRIBUTES:
                text = str(attribute.get("value", "")).removeprefix("0s")
                return attributes_from_base64(text, name=name)
        return {}

    def entries(self, directory: str) -> Iterator[Entry]:
        """Yield a directory's entries (see ListDirectory); nothing if it does not exist.

        Raises an error if the root does not exist.
        """
        path = f"{self._root}/{directory}".rstrip("/") or "/"
        last = ""
        while True:
            try:
                response = self.web.ask("GET", path, "LISTSTATUS_BATCH", startAfter=last)
            except RemoteError as error:
                if error.name in ABSENT and directory:
                    return
                raise store_error(error, directory or self._root) from error
            listing = response["DirectoryListing"]
            for status in listing["partialListing"]["FileStatuses"]["FileStatus"]:
                last = status["pathSuffix"]
                if directory or last != INCOMING:
                    yield _entry(status)
            if not listing["remainingEntries"]:
                return

    def remove_empty_parents(self, name: str) -> None:
        """Remove the empty directories above a chunk, never the root."""
        segments = name.split("/")[:-1]
        for count in range(len(segments), 0, -1):
            path = "/".join((self._root, *segments[:count]))
            try:
                self.web.ask("DELETE", path, "DELETE", recursive="false")
            except RemoteError:  # The directory is not empty, or it was already removed.
                return

    def remove_quietly(self, path: str) -> None:
        """Remove an incoming file if possible; otherwise a later sweep removes it."""
        with suppress(RemoteError, RetriableError):
            self.web.ask("DELETE", path, "DELETE", recursive="false")

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Convert refusals; absent files raise NotFoundError."""
        try:
            yield
        except RemoteError as error:
            if error.name in ABSENT or (
                error.name == "AccessControlException" and ("is not a directory" in error.message)
            ):
                self.verify()
                raise NotFoundError("the object is not in the store", name=name) from error
            raise store_error(error, name) from error

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Convert refusals during a creation."""
        try:
            yield
        except RemoteError as error:
            if error.name == "FileNotFoundException":
                self.verify()
            raise store_error(error, name) from error


def _entry(status: Mapping[str, Any]) -> Entry:
    return Entry(
        name=status["pathSuffix"],
        is_directory=status["type"] == "DIRECTORY",
        length_bytes=status["length"],
        last_modified_ms=status["modificationTime"],
    )
