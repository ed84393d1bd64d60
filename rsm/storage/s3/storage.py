"""Implements ChunkStorage in an S3 bucket: the chunk's name is the key of its object.

Supports neither append nor truncate. An object counts as absent only if the store reports that its
key is missing: HEAD returns 404 also for a missing bucket, so a GET then distinguishes the two. A
read that breaks off continues only with the same ETag. `delete` also needs the permission to read;
`delete_many` does not. Listings and the access check need the permission to list.

Memory: that of rsm.storage.s3.upload, twice the range being read, and a page of 1000 names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.local_segment import ContentSource
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import ByteRange
from rsm.storage.broken_reads import RangeBody, ReadLimits, read_on
from rsm.storage.changes import delete_joined, require_distinct
from rsm.storage.checksum_text import parse_crc32c
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, Concat, DeleteOutcome
from rsm.storage.lifecycle_rules import LifecycleRule
from rsm.storage.names import check_name, is_name
from rsm.storage.object_metadata import decode_attributes
from rsm.storage.object_storage import ObjectChunkStorage
from rsm.storage.s3 import lifecycle
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.concat import JoinedObject, send_joined
from rsm.storage.s3.errors import code_of, is_no_listing, store_error
from rsm.storage.s3.multipart import discard_uploads, multipart_upload
from rsm.storage.s3.upload import S3Uploads

_CAPABILITIES = Capabilities(
    can_append=False,
    can_truncate=False,
    concat=Concat.NATIVE,
    has_inline_attributes=True,
    has_stored_checksum=True,
    has_confirmed_creation=True,
    has_reusable_uploads=True,
)
_MAX_NAME_BYTES = 1024
_DELETE_AT_ONCE = 1000
_READ_BYTES = 8 << 20  # A default chunk with its overhead fits into one piece, which needs no join.

_log = logging.getLogger(__name__)


class S3ChunkStorage(ObjectChunkStorage):
    """Stores chunks in the bucket. Thread-safe. Opening sends no request.

    A request takes at most `max_attempts` times `attempt_timeout_ms` for each of its phases
    (connect, send, wait for data), plus the pauses between attempts, which grow to 20 s.
    """

    def __init__(self, bucket: S3Bucket) -> None:
        self._bucket = bucket
        self._uploads = S3Uploads(bucket)
        self._has_warned = False
        self._read_limits = ReadLimits(
            max_openings=bucket.settings.max_attempts,
            timeout_ms=bucket.settings.attempt_timeout_ms,
        )

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        self._check_name(name)
        return self._uploads.create(name, source, attributes or {})

    def concat(self, target: str, sources: Sequence[str]) -> None:
        require_distinct(target, sources)
        objects = [self._joined(name) for name in (target, *sources)]
        attributes = decode_attributes(objects[0].metadata, name=target)
        look = self._uploads.look(attributes)
        with multipart_upload(self._bucket, target, look) as upload:
            send_joined(upload, objects, self.read_range)
            try:
                upload.complete()
            except ClientError as error:
                raise self._error(error, target) from error
        delete_joined(self, sources)

    def info(self, name: str) -> ChunkInfo:
        found = self._look_up(name)
        return ChunkInfo(
            name=name,
            length_bytes=found["ContentLength"],
            last_modified_ms=int(found["LastModified"].timestamp() * 1000),
            crc32c=parse_crc32c(found.get("ChecksumCRC32C", "")),
            attributes=decode_attributes(found.get("Metadata", {}), name=name),
        )

    def delete(self, name: str) -> None:
        self._look_up(name)
        self._bucket.ask("delete_object", Key=name)

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        errors: dict[str, TieredStorageError] = {}
        keys = []
        for name in dict.fromkeys(names):
            try:
                self._check_name(name)
            except InvalidConfigError as error:
                errors[name] = error
            else:
                keys.append(name)
        for first in range(0, len(keys), _DELETE_AT_ONCE):
            errors |= self._delete_some(keys[first : first + _DELETE_AT_ONCE])
        return tuple(DeleteOutcome(name=name, error=errors.get(name)) for name in names)

    def discard_uploads(self, name: str) -> None:
        """Abort unfinished uploads. Warns once if the store refuses to list them.

        That is no error, because the remaining parts only occupy storage.
        """
        self._check_name(name)
        try:
            discard_uploads(self._bucket, name)
        except ClientError as error:
            if not is_no_listing(error):
                raise self._error(error, name) from error
            if not self._has_warned:
                self._has_warned = True
                reason = self._error(error, name)
                _log.warning(LogLine("cannot list unfinished uploads: they remain", error=reason))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        page = {"Prefix": prefix, "StartAfter": after}
        while True:
            response = self._bucket.ask("list_objects_v2", **page)
            for found in response.get("Contents", ()):
                if is_name(found["Key"]):
                    yield ChunkInfo(
                        name=found["Key"],
                        length_bytes=found["Size"],
                        last_modified_ms=int(found["LastModified"].timestamp() * 1000),
                    )
            if not response.get("IsTruncated"):
                return
            page["ContinuationToken"] = response["NextContinuationToken"]

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        operation = "get_bucket_lifecycle_configuration"
        try:
            return tuple(lifecycle.lifecycle_rules(self._bucket.call(operation)))
        except ClientError as error:
            if code_of(error) == "NoSuchLifecycleConfiguration":
                return ()
            bucket = self._bucket.settings.bucket
            raise store_error(error, operation=operation, bucket=bucket) from error

    def check_access(self) -> None:
        # HeadBucket would not return the reason for a failure, because its response has no body.
        self._bucket.ask("list_objects_v2", MaxKeys=1)

    def close(self) -> None:
        self._uploads.close()
        self._bucket.close()

    def _check_name(self, name: str) -> None:
        check_name(name)
        if len(name.encode()) > _MAX_NAME_BYTES:
            raise InvalidConfigError(
                "the chunk name is too long: S3 allows at most 1024 bytes",
                name=name,
                advice="Use a shorter rsm.config.key.prefix",
            )

    def _look_up(self, name: str) -> Mapping[str, Any]:
        self._check_name(name)
        try:
            return self._bucket.call("head_object", Key=name, ChecksumMode="ENABLED")
        except ClientError as error:
            if code_of(error) not in {"404", "NoSuchKey"}:
                raise self._error(error, name) from error
        # The body of this response distinguishes a missing key from a missing bucket.
        self._bucket.ask("get_object", Key=name, Range="bytes=0-0")["Body"].close()
        return self._bucket.ask("head_object", Key=name, ChecksumMode="ENABLED")

    def _read(self, name: str, positions: ByteRange) -> bytes:
        return read_on(partial(self._open_range, name), positions, self._read_limits)

    def _joined(self, name: str) -> JoinedObject:
        found = self._look_up(name)
        return JoinedObject(
            name=name,
            length_bytes=found["ContentLength"],
            etag=found["ETag"],
            metadata=found.get("Metadata", {}),
        )

    @contextmanager
    def _open_range(
        self, name: str, positions: ByteRange, version: str | None
    ) -> Iterator[RangeBody]:
        same = {} if version is None else {"IfMatch": version}
        try:
            response = self._bucket.call("get_object", Key=name, Range=positions.to_http(), **same)
        except ClientError as error:
            if code_of(error) in {"InvalidRange", "416"}:
                yield RangeBody(pieces=iter(()), length_bytes=0)
                return
            if code_of(error) == "PreconditionFailed":
                raise RetriableError(
                    "cannot read the chunk: it was replaced meanwhile", name=name
                ) from error
            raise self._error(error, name) from error
        with closing(response["Body"]):
            length_bytes = response["ContentLength"]
            found = response.get("ContentRange", "")
            first = f"bytes {positions.start_position}-"
            if length_bytes > len(positions) or not found.startswith(first):
                raise CorruptError(
                    "the store returned a range that was not requested",
                    name=name,
                    wanted=positions,
                    found=found,
                )
            pieces = self._pieces(response["Body"], name)
            yield RangeBody(pieces=pieces, length_bytes=length_bytes, version=response["ETag"])

    def _pieces(self, body: Any, name: str) -> Iterator[bytes]:  # noqa: ANN401 - as the client
        try:
            while piece := body.read(_READ_BYTES):
                yield piece
        except BotoCoreError as error:
            raise store_error(error, name=name, bucket=self._bucket.settings.bucket) from error

    def _delete_some(self, names: Sequence[str]) -> dict[str, TieredStorageError]:
        """Delete one batch; return errors by name. A failed request is an error of each name."""
        request = {"Objects": [{"Key": name} for name in names], "Quiet": True}
        try:
            response = self._bucket.ask("delete_objects", Delete=request)
        except TieredStorageError as error:
            return dict.fromkeys(names, error)
        return {
            found["Key"]: self._error(ClientError({"Error": found}, "DeleteObjects"), found["Key"])
            for found in response.get("Errors", ())
            if found.get("Code") != "NoSuchKey"
        }

    def _error(self, error: ClientError, name: str) -> TieredStorageError:
        return store_error(error, name=name, bucket=self._bucket.settings.bucket)
