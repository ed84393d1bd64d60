"""Creation of objects: one PUT, or parts that go up while the next one is read.

The source is read once. What fits one part is a single PUT; more is a multipart upload, completed
or aborted whatever happens. The store compares the CRC32C of each part and of the whole, and makes
the object only if no other has its name.

The SDK may repeat a request whose answer was lost, and is then told that the object is there. So
that this is not taken for somebody else's, each creation leaves its own mark on its object.

A source that divides its content is uploaded in just these parts, another one in parts of
`part_bytes`.

Memory: `upload_memory_bytes`, at least one part, for all uploads together: a part is read only
when there is room for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from uuid import uuid4

from botocore.exceptions import ClientError

from rsm.segment.errors import TieredStorageError
from rsm.segment.local_segment import ContentSource, part_lengths_of
from rsm.storage.s3.attributes import creation_of, encode_metadata
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.errors import code_of, store_error, was_repeated
from rsm.storage.s3.multipart import MultipartUpload, multipart_upload
from rsm.storage.s3.parts import PartReader, spell_crc32c
from rsm.storage.s3.upload_room import UploadRoom

_IF_ABSENT = "*"
_DONE_BEFORE = frozenset({"PreconditionFailed", "NoSuchUpload"})


class S3Uploads:
    """Thread-safe."""

    def __init__(self, bucket: S3Bucket) -> None:
        settings = bucket.settings
        self._bucket = bucket
        self._part_bytes = settings.part_bytes
        parts_at_once = max(1, settings.upload_memory_bytes // settings.part_bytes)
        self._room = UploadRoom(settings.upload_memory_bytes)
        self._senders = ThreadPoolExecutor(parts_at_once, "s3-upload")
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
            lengths = self._part_lengths(source)
            if len(lengths) == 1:
                self._put(name, reader, look)
            else:
                self._put_in_parts(name, reader, look, lengths)
        except ClientError as error:
            if not self._was_done(error, name, creation):
                raise store_error(error, name=name, bucket=self._bucket.settings.bucket) from error
        return reader.checksum

    def look(self, attributes: Mapping[str, str], *, creation: str = "") -> dict[str, object]:
        """What every new object is given beside its content."""
        metadata = encode_metadata(attributes, creation=creation or uuid4().hex)
        return {**self._look, "Metadata": metadata}

    def close(self) -> None:
        self._senders.shutdown(wait=True, cancel_futures=True)

    def _put(self, name: str, reader: PartReader, look: Mapping[str, object]) -> None:
        length_bytes = reader.left_bytes
        self._room.take(length_bytes)
        try:
            content = reader.read(length_bytes)
            self._bucket.call(
                "put_object",
                Key=name,
                Body=content,
                ChecksumCRC32C=spell_crc32c(reader.checksum),
                IfNoneMatch=_IF_ABSENT,
                **look,
            )
        finally:
            self._room.give_back(length_bytes)

    def _put_in_parts(
        self, name: str, reader: PartReader, look: Mapping[str, object], lengths: Sequence[int]
    ) -> None:
        length_bytes = reader.left_bytes
        with multipart_upload(self._bucket, name, **look) as upload:
            self._send_parts(upload, reader, lengths)
            upload.complete(
                IfNoneMatch=_IF_ABSENT,
                ChecksumCRC32C=spell_crc32c(reader.checksum),
                MpuObjectSize=length_bytes,
            )

    def _send_parts(
        self, upload: MultipartUpload, reader: PartReader, lengths: Sequence[int]
    ) -> None:
        """Send parts while the next one is read; returns, or raises, when none is under way."""
        under_way: deque[Future[None]] = deque()
        try:
            for number, length_bytes in enumerate(lengths, start=1):
                while under_way and under_way[0].done():
                    under_way.popleft().result()
                under_way.append(self._send_next(upload, number, reader, length_bytes))
            for sending in under_way:
                sending.result()
        finally:
            for sending in under_way:
                sending.cancel()
            wait(under_way)

    def _send_next(
        self, upload: MultipartUpload, number: int, reader: PartReader, length_bytes: int
    ) -> Future[None]:
        """Read one part as soon as there is room for it; its sending gives the room back."""
        self._room.take(length_bytes)
        try:
            content = reader.read(length_bytes)
            sending = self._senders.submit(upload.put, number, content)
        except BaseException:
            self._room.give_back(length_bytes)
            raise
        sending.add_done_callback(lambda _sending: self._room.give_back(length_bytes))
        return sending

    def _part_lengths(self, source: ContentSource) -> Sequence[int]:
        """One length if the content is a single request."""
        given = part_lengths_of(source)
        if given is not None:
            return given
        full, rest_bytes = divmod(source.length_bytes, self._part_bytes)
        lengths = [self._part_bytes] * full
        return [*lengths, rest_bytes] if rest_bytes or not full else lengths

    def _was_done(self, error: ClientError, name: str, creation: str) -> bool:
        """Whether the request failed because an earlier sending of it had succeeded."""
        if code_of(error) not in _DONE_BEFORE or not was_repeated(error):
            return False
        try:
            found = self._bucket.ask("head_object", Key=name)
        except TieredStorageError:
            return False
        return creation_of(found.get("Metadata", {})) == creation
