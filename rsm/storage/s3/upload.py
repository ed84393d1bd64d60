"""Creates objects by one PUT or by a multipart upload, which sends parts while it reads the next.

The source is read once. Content of one part is a single PUT. Longer content is a multipart upload,
completed or aborted; after an error it stays open if a later upload may use its parts again. The
store checks the CRC32C of each part and of the whole. It refuses the creation if an object of the
same name exists. If its response contains no checksum, a HEAD request follows.

The SDK may repeat a request whose response was lost, and the store then reports an existing object.
Each creation therefore stores an id with the object, to recognize its own object.

If a source defines parts, they are uploaded unchanged. Any other source is uploaded in parts of
`part_bytes`. Content of unknown length is a multipart upload, unless it is empty. Parts that an
unfinished upload has already sent are copied in the store (rsm.storage.s3.earlier_upload).

Memory: `upload_memory_bytes`, at least one part, for all uploads together. Streams use at most
`stream_memory_bytes` of it. A part is read only when there is room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from rsm.segment.errors import TieredStorageError
from rsm.segment.local_segment import ContentSource
from rsm.storage.checksum_text import parse_crc32c, spell_crc32c
from rsm.storage.confirmation import require_stored
from rsm.storage.object_metadata import creation_of, encode_metadata
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.earlier_upload import EarlierUploads
from rsm.storage.s3.errors import code_of, store_error, was_repeated
from rsm.storage.s3.multipart import MultipartUpload, multipart_upload
from rsm.storage.uploads.part_senders import PartSenders
from rsm.storage.uploads.parts import PartReader

_CHECKSUM = "ChecksumCRC32C"
_IF_ABSENT = "*"
_DONE_BEFORE = frozenset({"PreconditionFailed", "NoSuchUpload"})


class S3Uploads:
    """Creates objects in one bucket. Thread-safe."""

    def __init__(self, bucket: S3Bucket) -> None:
        settings = bucket.settings
        self._bucket = bucket
        self._earlier = EarlierUploads(bucket)
        self._senders = PartSenders(
            "s3-upload",
            part_bytes=settings.part_bytes,
            memory_bytes=settings.upload_memory_bytes,
            stream_memory_bytes=settings.stream_memory_bytes,
        )
        self._look: dict[str, object] = {}
        if settings.storage_class is not None:
            self._look["StorageClass"] = settings.storage_class
        if settings.encryption is not None:
            self._look["ServerSideEncryption"] = settings.encryption.value
        if settings.kms_key_id is not None:
            self._look["SSEKMSKeyId"] = settings.kms_key_id

    def create(self, name: str, source: ContentSource, attributes: Mapping[str, str]) -> int:
        """See ChunkStorage.create_with_content."""
        reader = PartReader(source, name)
        creation = uuid4().hex
        look = self.look(attributes, creation=creation)
        try:
            if self._senders.is_one_part(source, reader):
                response = self._put(name, reader, look)
            else:
                lengths = self._senders.lengths(source, reader)
                response = self._put_in_parts(name, reader, look, lengths)
        except ClientError as error:
            if not self._was_done(error, name, creation):
                raise store_error(error, name=name, bucket=self._bucket.settings.bucket) from error
            response = {}
        self._confirm(name, response, reader.read_bytes, reader.checksum)
        return reader.checksum

    def look(self, attributes: Mapping[str, str], *, creation: str = "") -> dict[str, object]:
        """Return the settings and the user metadata of a creation."""
        metadata = encode_metadata(attributes, creation=creation or uuid4().hex)
        return {**self._look, "Metadata": metadata}

    def close(self) -> None:
        self._senders.close()

    def _put(self, name: str, reader: PartReader, look: Mapping[str, object]) -> Mapping[str, Any]:
        with self._senders.only_part(reader) as content:
            return self._bucket.call(
                "put_object",
                Key=name,
                Body=content,
                ChecksumCRC32C=spell_crc32c(reader.checksum),
                IfNoneMatch=_IF_ABSENT,
                **look,
            )

    def _put_in_parts(
        self, name: str, reader: PartReader, look: Mapping[str, object], lengths: Iterable[int]
    ) -> Mapping[str, Any]:
        def is_kept() -> bool:
            return reader.reuse is not None and self._earlier.can_use(name)

        with ExitStack() as started:
            upload = self._send_parts(
                reader,
                lengths,
                lambda: started.enter_context(multipart_upload(self._bucket, name, look, is_kept)),
            )
            return upload.complete(
                IfNoneMatch=_IF_ABSENT,
                ChecksumCRC32C=spell_crc32c(reader.checksum),
                MpuObjectSize=reader.read_bytes,
            )

    def _send_parts(
        self, reader: PartReader, lengths: Iterable[int], begin: Callable[[], MultipartUpload]
    ) -> MultipartUpload:
        """Begin an upload and send the parts; copy the parts that an unfinished upload has sent.

        The unfinished upload ends before the new one begins.
        """
        earlier = None if reader.reuse is None else self._earlier.find(reader.reuse, begin)
        if earlier is None:
            upload = begin()
            self._senders.send(reader, lengths, upload.put)
            return upload

        def take(content: bytearray) -> bool:
            return earlier.take(content, reader.checksum)

        def put(number: int, content: bytearray) -> None:
            copied_count = 1 if earlier.taken_count else 0
            earlier.end().put(number - earlier.taken_count + copied_count, content)

        self._senders.send(reader, lengths, put, take)
        return earlier.end()

    def _confirm(
        self, name: str, response: Mapping[str, Any], length_bytes: int, checksum: int
    ) -> None:
        """Check the store's checksum; also the length if the response contains no checksum."""
        stored = parse_crc32c(response.get(_CHECKSUM, ""))
        if stored is None:
            found = self._bucket.ask("head_object", Key=name, ChecksumMode="ENABLED")
            stored = parse_crc32c(found.get(_CHECKSUM, ""))
            found_bytes = found["ContentLength"]
            require_stored(name, "length_bytes", stored=found_bytes, sent=length_bytes)
        if stored is not None:  # Some stores keep no checksum.
            require_stored(name, "crc32c", stored=stored, sent=checksum)

    def _was_done(self, error: ClientError, name: str, creation: str) -> bool:
        """Return whether the SDK's retry failed because the first attempt had succeeded."""
        if code_of(error) not in _DONE_BEFORE or not was_repeated(error):
            return False
        try:
            found = self._bucket.ask("head_object", Key=name)
        except TieredStorageError:
            return False
        return creation_of(found.get("Metadata", {})) == creation
