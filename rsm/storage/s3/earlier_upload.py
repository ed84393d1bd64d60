"""Reuses the parts of an unfinished upload for an upload of another object.

    1. List the parts of the unfinished upload.
    2. Compare the content with the parts by checksum. Do not send equal bytes.
    3. At the first difference, complete the unfinished upload with the equal parts.
    4. Begin the upload of the content. The store copies the completed object as the first part.
    5. Send the rest of the content.

If no parts are equal, the unfinished upload is aborted instead. In both cases it ends before the
upload of the content begins, so that the store refuses late parts. If the abort fails, the deletion
of the upload's object repeats it.

S3 copies only from objects, so the unfinished upload first becomes an object with the upload's own
name. The completion names the ETag of each part, and the checksum of all parts. It fails if the
process of the unfinished upload has ended that upload, or has sent other bytes since. After the
completion, that process can send no parts. The checksum of the copy is compared with that of the
content.

This process does not keep equal bytes in memory. So if the completion or the copy fails, the
creation fails with RetriableError, after an attempt to abort the upload that failed. After a failed
copy, this process reuses no parts, because a store that cannot copy would fail each time.

The object is copied as a whole, not part by part: that needs one request, and some stores return
the checksum of the whole object for a copied range. So an upload that began with a copy has one
large part. If that upload is not finished either, its large part is compared as a whole.
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
_MAX_COPY_BYTES = 5 << 30  # S3's limit for one copy

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """Represents a part of an unfinished upload, as the store lists it.

    `end_position` is the part's end in the object.
    """

    etag: str
    crc32c: int
    length_bytes: int
    end_position: int


class EarlierUpload:
    """Represents an unfinished upload of the object `name`, with its first parts in order.

    Not thread-safe. Memory: 200 bytes for each part.
    """

    def __init__(
        self,
        bucket: S3Bucket,
        name: str,
        upload_id: str,
        *,
        parts: tuple[SentPart, ...],
        reuse: ContentReuse,
        begin: Callable[[], MultipartUpload],
        failed: Callable[[], None],
    ) -> None:
        """`begin` begins the content's upload. `failed` is called if the store cannot copy."""
        self.name = name
        self.parts = parts
        self._begin = begin
        self._failed = failed
        self._bucket = bucket
        self._upload_id = upload_id
        self._reuse = reuse
        self._same_count = 0
        self._same_crc32c = 0
        self._compared_bytes = 0
        self._compared_crc32c = 0
        self._following: MultipartUpload | None = None
        self.taken_count = 0
        """The number of pieces of the content that need not be sent."""

    def take(self, piece: bytearray, checksum: int) -> bool:
        """Return whether the next piece of the content need not be sent.

        A piece need not be sent if it equals the next part, or belongs to a larger part. The larger
        part is compared once all of its pieces were taken. `checksum` is that of the content up to
        the end of the piece. After the first False, each piece must be sent. Raises the errors of
        `end`.
        """
        if self._following is not None:
            return False
        part = self.parts[self._same_count]
        left_bytes = part.length_bytes - self._compared_bytes - len(piece)
        piece_crc32c = crc32c(piece, self._compared_crc32c)
        if left_bytes:
            is_same = left_bytes > 0 and self._divides(part, piece)
        else:
            is_same = piece_crc32c == part.crc32c
        if not is_same or not self._reuse.allows(part.end_position):
            self.end()
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
            self.end()
        return True

    def _divides(self, part: SentPart, piece: bytearray) -> bool:
        """Return whether the part consists of whole pieces of the content's upload."""
        whole_bytes = self._bucket.settings.part_bytes
        return len(piece) == whole_bytes and part.length_bytes % whole_bytes == 0

    def abort(self) -> bool:
        """Abort the upload; return whether that succeeded."""
        return MultipartUpload(self._bucket, self.name, self._upload_id).abort()

    def end(self) -> MultipartUpload:
        """End this upload, and return the content's upload, which begins with the equal parts.

        Idempotent. The caller sends later pieces. Raises RetriableError if the equal parts cannot
        be reused, and the errors of `begin`.
        """
        if self._following is None:
            try:
                etag = self._complete() if self._same_count or self._compared_bytes else None
                if etag is None:
                    self.abort()
                self._following = self._begin()
                if etag is not None:
                    self._copy(etag, self._following)
            finally:
                self._reuse.unused(self.name)
        return self._following

    def _complete(self) -> str:
        """Complete the upload with the equal parts; return the object's ETag."""
        parts = [
            {"PartNumber": number, "ETag": each.etag, CHECKSUM: spell_crc32c(each.crc32c)}
            for number, each in enumerate(self._same, start=1)
        ]
        try:
            if self._compared_bytes:
                raise RetriableError("a part differs from the content", name=self.name)
            completed = self._bucket.ask(
                "complete_multipart_upload",
                Key=self.name,
                UploadId=self._upload_id,
                MultipartUpload={"Parts": parts},
                ChecksumType=OF_THE_WHOLE,
                ChecksumCRC32C=spell_crc32c(self._same_crc32c),
                MpuObjectSize=self._same[-1].end_position,
                IfNoneMatch="*",
            )
        except TieredStorageError as error:
            self.abort()
            raise _not_usable(error) from error
        etag: str = completed["ETag"]
        return etag

    def _copy(self, etag: str, upload: MultipartUpload) -> None:
        checksum = spell_crc32c(self._same_crc32c)
        try:
            copied = upload.copy(1, self.name, etag=etag)
            if copied != checksum:
                raise RetriableError(
                    "the checksum of the copy is wrong", copied=copied, expected=checksum
                )
        except TieredStorageError as error:
            upload.abort()  # The copy may have succeeded, and the next attempt must not reuse it.
            # NotFoundError means only that the object was deleted. The store may support copies.
            if not isinstance(error, NotFoundError):
                self._failed()
            raise _not_usable(error) from error
        length_bytes = self._same[-1].end_position
        self._reuse.reused(length_bytes)
        _log.info(
            LogLine(
                "reused parts of an unfinished upload",
                name=upload.name,
                unfinished=self.name,
                parts=self._same_count,
                sent_parts=len(self.parts),
                bytes=length_bytes,
            )
        )

    @property
    def _same(self) -> tuple[SentPart, ...]:
        return self.parts[: self._same_count]


def _not_usable(error: TieredStorageError) -> RetriableError:
    return RetriableError(
        "cannot reuse the parts of an unfinished upload: the next attempt sends all bytes",
        reason=error,
    )


class EarlierUploads:
    """Finds unfinished uploads in a bucket; records whether their parts can be reused.

    Thread-safe.
    """

    def __init__(self, bucket: S3Bucket) -> None:
        self._bucket = bucket
        self._noted = ""
        self._is_listed = True
        self._can_copy = True

    def can_use(self, name: str) -> bool:
        """Return whether a later upload can reuse the parts of this object's failed upload."""
        return self._can_copy and self._is_listed and can_list_uploads(self._bucket, name)

    def find(
        self, reuse: ContentReuse, begin: Callable[[], MultipartUpload]
    ) -> EarlierUpload | None:
        """Return the unfinished upload with the most bytes; try to abort the others.

        `begin` begins the upload of the content. Returns None if no parts can be reused: there are
        none, the store does not list them, or an earlier copy failed.
        """
        found: tuple[EarlierUpload, ...] = ()
        try:
            found = self._unfinished(reuse, begin)
        except ClientError as error:
            self._note(store_error(error))
            self._is_listed = not is_no_listing(error)
            if self._is_listed:
                return None
        except TieredStorageError as error:
            self._note(error)
            return None
        with_parts = (each for each in found if each.parts)
        longest = max(with_parts, key=lambda each: each.parts[-1].end_position, default=None)
        for each in found:
            if each is not longest and not each.abort():
                break  # The other aborts would probably fail, too, each after all of its attempts.
        for name in reuse.names:
            if longest is None or name != longest.name:
                reuse.unused(name)
        return longest

    def _unfinished(
        self, reuse: ContentReuse, begin: Callable[[], MultipartUpload]
    ) -> tuple[EarlierUpload, ...]:
        """Return all unfinished uploads, without their parts if an earlier copy failed."""
        found = tuple(
            EarlierUpload(
                self._bucket,
                name,
                each,
                parts=self._sent(name, each) if self._can_copy else (),
                reuse=reuse,
                begin=begin,
                failed=self._stop_copies,
            )
            for name in reuse.names
            for each in upload_ids(self._bucket, name)
        )
        self._is_listed = True
        return found

    def _stop_copies(self) -> None:
        self._can_copy = False
        _log.warning(
            LogLine(
                "cannot copy the parts of an unfinished upload: sending all bytes again",
                advice="Check the store's log. Then restart rlm, so that it tries copies again",
            )
        )

    def _sent(self, name: str, upload_id: str) -> tuple[SentPart, ...]:
        """Return the parts before the first that cannot be reused.

        A part cannot be reused after a gap, without a checksum, or beyond the limit of a copy.
        """
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
        """Log why nothing is reused, unless the last logged reason is the same."""
        if self._noted != error.message:
            self._noted = error.message
            _log.info(LogLine("cannot list unfinished uploads: sending all bytes", error=error))
