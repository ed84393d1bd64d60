"""Uses the parts of an unfinished upload again for an upload of another object.

    parts listed → the first bytes of the content have their checksums, and are not sent
    → with the first other bytes, the unfinished upload is completed with the parts that are equal
    → the store copies that object as the first part → the rest is sent

S3 copies only from objects, so the unfinished upload becomes an object of its own name first. Its
completion names the ETag of each part, and the checksum of all of them. So it fails if the upload's
own process has ended it, or has sent other bytes since. That process can send no part afterwards.
The checksum of the copy is compared with that of the content, too.

Bytes with the right checksum are not kept in memory. So a completion or a copy that fails ends the
creation with RetriableError. A later creation does not find the unfinished upload again, nor that
which the copy may have reached. After a failed copy this process uses no upload again, because a
store that cannot copy would fail each time.

One copy, not one of each part: that is one request, and some stores return the checksum of the
whole object for a copied range. So an upload that began with a copy has one large part. If that
upload does not end either, its large part is compared as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from crc32c import crc32c

from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError
from rsm.segment.local_segment import ContentReuse
from rsm.segment.log_line import LogLine
from rsm.storage.checksum_text import parse_crc32c, spell_crc32c
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.errors import code_of, is_no_listing, store_error
from rsm.storage.s3.multipart import (
    CHECKSUM,
    MAX_PARTS,
    OF_THE_WHOLE,
    MultipartUpload,
    can_list_uploads,
    upload_ids,
)

_PAGE_PARTS = 1_000
_MAX_COPY_BYTES = 5 << 30  # S3's limit of one copy

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """One part of an unfinished upload, as the store lists it, and its end in the object."""

    etag: str
    crc32c: int
    length_bytes: int
    end_position: int


class EarlierUpload:
    """An unfinished upload of the object `name`, with its first parts in order. Not thread-safe.

    Memory: 200 bytes for each part.
    """

    def __init__(
        self,
        bucket: S3Bucket,
        name: str,
        upload_id: str,
        *,
        parts: tuple[SentPart, ...],
        reuse: ContentReuse,
        failed: Callable[[], None],
    ) -> None:
        """`failed` is called if the store did not copy."""
        self.name = name
        self.parts = parts
        self._failed = failed
        self._bucket = bucket
        self._upload_id = upload_id
        self._reuse = reuse
        self._same_count = 0
        self._same_crc32c = 0
        self._compared_bytes = 0
        self._compared_crc32c = 0
        self._is_over = False
        self.taken_count = 0
        """How many pieces of the content are not sent."""

    def take(self, upload: MultipartUpload, piece: bytearray, checksum: int) -> bool:
        """Return whether the next piece of the content is the same, so that it is not sent.

        `checksum` is that of the content up to the end of the piece. After the first False, each
        piece must be sent. Raises RetriableError if the upload cannot be used after all.
        """
        if self._is_over:
            return False
        part = self.parts[self._same_count]
        left_bytes = part.length_bytes - self._compared_bytes - len(piece)
        piece_crc32c = crc32c(piece, self._compared_crc32c)
        if left_bytes:
            is_same = left_bytes > 0 and self._divides(part, piece)
        else:
            is_same = piece_crc32c == part.crc32c
        if not is_same or not self._reuse.allows(part.end_position):
            self.end(upload)
            return False
        self.taken_count += 1
        if left_bytes:
            self._compared_bytes += len(piece)
            self._compared_crc32c = piece_crc32c
            return True
        self._compared_bytes = self._compared_crc32c = 0
        self._same_count += 1
        self._same_crc32c = checksum
        if self._same_count == len(self.parts):
            self.end(upload)
        return True

    def _divides(self, part: SentPart, piece: bytearray) -> bool:
        """Return whether whole pieces of the content's upload make up the part."""
        whole_bytes = self._bucket.settings.part_bytes
        return len(piece) == whole_bytes and part.length_bytes % whole_bytes == 0

    def end(self, upload: MultipartUpload) -> None:
        """Have the store copy what is the same; later pieces are sent. Idempotent.

        Raises RetriableError if it did not.
        """
        if self._is_over:
            return
        self._is_over = True
        try:
            if self._compared_bytes:
                raise RetriableError("its part differs from the content", name=self.name)
            if self._same_count:
                self._copy(upload)
        except TieredStorageError as error:
            upload.abort()  # its copy may have succeeded, and must not be used by the next attempt
            raise RetriableError(
                "parts of an unfinished upload cannot be used again: the next attempt sends all",
                reason=error,
            ) from error
        finally:
            self._reuse.unused(self.name)

    def _copy(self, upload: MultipartUpload) -> None:
        same = self.parts[: self._same_count]
        length_bytes = same[-1].end_position
        checksum = spell_crc32c(self._same_crc32c)
        parts = [
            {"PartNumber": number, "ETag": each.etag, CHECKSUM: spell_crc32c(each.crc32c)}
            for number, each in enumerate(same, start=1)
        ]
        completed = self._bucket.ask(
            "complete_multipart_upload",
            Key=self.name,
            UploadId=self._upload_id,
            MultipartUpload={"Parts": parts},
            ChecksumType=OF_THE_WHOLE,
            ChecksumCRC32C=checksum,
            MpuObjectSize=length_bytes,
            IfNoneMatch="*",
        )
        try:
            copied = upload.copy(1, self.name, etag=completed["ETag"])
            if copied != checksum:
                raise RetriableError(
                    "the copy has another checksum", copied=copied, expected=checksum
                )
        except NotFoundError:
            raise  # someone has deleted the object
        except TieredStorageError:
            self._failed()
            raise
        self._reuse.reused(length_bytes)
        _log.info(
            LogLine(
                "used parts of an unfinished upload again",
                name=upload.name,
                unfinished=self.name,
                parts=len(same),
                sent_parts=len(self.parts),
                bytes=length_bytes,
            )
        )


class EarlierUploads:
    """Finds unfinished uploads in one bucket. Thread-safe."""

    def __init__(self, bucket: S3Bucket) -> None:
        self._bucket = bucket
        self._noted = ""
        self._is_listed = True
        self._can_copy = True

    def can_use(self, name: str) -> bool:
        """Return whether an upload of this object that ends now may be used later."""
        return self._can_copy and self._is_listed and can_list_uploads(self._bucket, name)

    def find(self, reuse: ContentReuse) -> EarlierUpload | None:
        """Return the unfinished upload that has the most bytes; the other ones are unused.

        Returns None if the store does not answer. Without the permission to list, and after a copy
        that failed, all are unused.
        """
        longest = None
        try:
            if self._can_copy:
                longest = self._longest(reuse)
        except ClientError as error:
            self._note(store_error(error))
            self._is_listed = not is_no_listing(error)
            if self._is_listed:
                return None
        except TieredStorageError as error:
            self._note(error)
            return None
        for name in reuse.names:
            if longest is None or name != longest.name:
                reuse.unused(name)
        return longest

    def _longest(self, reuse: ContentReuse) -> EarlierUpload | None:
        found = [
            EarlierUpload(
                self._bucket,
                name,
                each,
                parts=self._sent(name, each),
                reuse=reuse,
                failed=self._stop_copies,
            )
            for name in reuse.names
            for each in upload_ids(self._bucket, name)
        ]
        self._is_listed = True
        with_parts = [each for each in found if each.parts]
        return max(with_parts, key=lambda each: each.parts[-1].end_position, default=None)

    def _stop_copies(self) -> None:
        self._can_copy = False
        _log.warning(
            LogLine(
                "the store cannot copy what an unfinished upload has sent, sends all again",
                advice="Check the store's log. To try copies again, restart rlm",
            )
        )

    def _sent(self, name: str, upload_id: str) -> tuple[SentPart, ...]:
        """Return the parts from the first one on, without a gap, that have a checksum."""
        parts: list[SentPart] = []
        position = 0
        for number, each in enumerate(self._listed(name, upload_id), start=1):
            checksum = parse_crc32c(each.get(CHECKSUM, ""))
            position += each["Size"]
            if each["PartNumber"] != number or checksum is None or position > _MAX_COPY_BYTES:
                break
            sent = SentPart(
                etag=each["ETag"],
                crc32c=checksum,
                length_bytes=each["Size"],
                end_position=position,
            )
            parts.append(sent)
        return tuple(parts)

    def _listed(self, name: str, upload_id: str) -> Iterator[dict[str, Any]]:
        """Yield the parts as the store lists them; none if the upload has ended meanwhile."""
        for marker in range(0, MAX_PARTS, _PAGE_PARTS):
            try:
                page = self._bucket.call(
                    "list_parts",
                    Key=name,
                    UploadId=upload_id,
                    PartNumberMarker=marker,
                    MaxParts=_PAGE_PARTS,
                )
            except ClientError as error:
                if code_of(error) == "NoSuchUpload":
                    return
                raise
            yield from page.get("Parts", ())
            if not page.get("IsTruncated"):
                return

    def _note(self, error: TieredStorageError) -> None:
        """Log why nothing is used again, once for each reason."""
        if self._noted != error.message:
            self._noted = error.message
            _log.info(LogLine("cannot list unfinished uploads, sends all again", error=error))
