"""Sends, completes and aborts multipart uploads.

A killed process leaves its upload in the bucket, where a listing of objects does not show it.
`discard_uploads` removes it by the name of the object; otherwise only a lifecycle rule
(AbortIncompleteMultipartUpload) does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from botocore.exceptions import ClientError
from crc32c import crc32c

from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError, UnsupportedError
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import ByteRange
from rsm.storage.checksum_text import spell_crc32c
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.errors import is_no_listing

MAX_PARTS = 10_000
_MAX_LISTINGS = 5
CHECKSUM = "ChecksumCRC32C"
OF_THE_WHOLE = "FULL_OBJECT"  # Otherwise the store keeps a checksum of the parts' checksums.

_log = logging.getLogger(__name__)


class MultipartUpload:
    """Represents an upload that is not completed. Part numbers begin at 1. Thread-safe.

    Parts may be sent in any order.
    """

    def __init__(self, bucket: S3Bucket, name: str, upload_id: str) -> None:
        self.name = name
        self._bucket = bucket
        self._target = {"Key": name, "UploadId": upload_id}
        self._parts: dict[int, Mapping[str, object]] = {}
        self._lock = threading.Lock()

    def put(self, number: int, content: bytes | bytearray) -> None:
        """Send one part; the store checks its CRC32C."""
        checksum = {CHECKSUM: spell_crc32c(crc32c(content))}
        response = self._part(number, "upload_part", Body=content, **checksum)
        self._keep(number, {"ETag": response["ETag"], **checksum})

    def copy(
        self, number: int, source: str, positions: ByteRange | None = None, *, etag: str
    ) -> str | None:
        """Have the store copy another object that still has this `etag`, or a range of that object.

        S3 copies ranges only of objects above 5 MB. Returns the store's checksum of the part, in
        its text form; None if the store returns none.
        """
        part_of = {} if positions is None else {"CopySourceRange": positions.to_http()}
        response = self._part(
            number,
            "upload_part_copy",
            CopySource={"Bucket": self._bucket.settings.bucket, "Key": source},
            CopySourceIfMatch=etag,
            **part_of,
        )
        part = response["CopyPartResult"]
        self._keep(number, {key: part[key] for key in ("ETag", CHECKSUM) if key in part})
        checksum: str | None = part.get(CHECKSUM)
        return checksum

    def complete(self, **conditions: object) -> Mapping[str, Any]:
        """Create the object from all parts, and return the store's response.

        Raises the errors of S3Bucket.call.
        """
        parts = [{"PartNumber": number, **self._parts[number]} for number in sorted(self._parts)]
        return self._bucket.call(
            "complete_multipart_upload",
            **self._target,
            MultipartUpload={"Parts": parts},
            ChecksumType=OF_THE_WHOLE,
            **conditions,
        )

    def abort(self) -> bool:
        """Abort the upload; return whether that succeeded. Logs a failure."""
        try:
            self._bucket.ask("abort_multipart_upload", **self._target)
        except NotFoundError:
            return True  # The upload had already ended, for example if a response was lost.
        except TieredStorageError as error:
            _log.warning(LogLine("cannot abort a multipart upload: parts remain", error=error))
            return False
        return True

    def _part(self, number: int, operation: str, **parameters: object) -> Mapping[str, Any]:
        if number > MAX_PARTS:
            raise UnsupportedError(
                "cannot upload the object: it needs too many parts",
                name=self._target["Key"],
                most_parts=MAX_PARTS,
                advice="Raise rsm.config.storage.s3.multipart.upload.part.size",
            )
        return self._bucket.ask(operation, **self._target, PartNumber=number, **parameters)

    def _keep(self, number: int, part: Mapping[str, object]) -> None:
        with self._lock:
            self._parts[number] = part


@contextmanager
def multipart_upload(
    bucket: S3Bucket,
    name: str,
    look: Mapping[str, object],
    is_kept: Callable[[], bool] = lambda: False,
) -> Iterator[MultipartUpload]:
    """Start an upload, which the context must complete.

    `look` contains the settings and the user metadata of the object. An error in the context aborts
    the upload, unless `is_kept` returns True: the parts then stay for another upload.
    """
    checksums = {"ChecksumAlgorithm": "CRC32C", "ChecksumType": OF_THE_WHOLE}
    response = bucket.ask("create_multipart_upload", Key=name, **checksums, **look)
    upload = MultipartUpload(bucket, name, response["UploadId"])
    try:
        yield upload
    except BaseException:
        if not is_kept():
            upload.abort()
        raise


def can_list_uploads(bucket: S3Bucket, name: str) -> bool:
    """Return whether the store lists unfinished uploads; True also if it does not respond."""
    try:
        bucket.call("list_multipart_uploads", Prefix=name, MaxUploads=1)
    except ClientError as error:
        return not is_no_listing(error)
    except TieredStorageError:
        return True
    return True


def upload_ids(bucket: S3Bucket, name: str) -> list[str]:
    """Return the ids of the unfinished uploads of an object. Raises the SDK's ClientError."""
    found = bucket.call("list_multipart_uploads", Prefix=name).get("Uploads", ())
    # The name precedes all other names with this prefix, so the first page lists its uploads.
    return [each["UploadId"] for each in found if each.get("Key") == name]


def discard_uploads(bucket: S3Bucket, name: str) -> None:
    """Abort all unfinished uploads of an object, also those of other processes.

    The store then refuses their later parts and completions. A part in flight may survive an abort,
    so this function lists the uploads again after it. Raises the listing's ClientError, the errors
    of the aborts, and RetriableError if each listing contains uploads.
    """
    for _ in range(_MAX_LISTINGS):
        found = upload_ids(bucket, name)
        if not found:
            return
        for upload_id in found:
            with suppress(NotFoundError):  # Its own process may have ended it meanwhile.
                bucket.ask("abort_multipart_upload", Key=name, UploadId=upload_id)
    raise RetriableError(
        "cannot discard the unfinished uploads of an object: each listing contains more",
        name=name,
        listings=_MAX_LISTINGS,
    )
