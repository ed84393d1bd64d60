"""Implements ChunkStorage in an Azure container: a chunk is a block blob with the chunk's name.

The source is read once. Content of one part is sent in a single request. Longer content, and
content of unknown length, is uploaded as blocks; a last request creates the blob from the blocks.
Azure removes uncommitted blocks after a week. A creation fails if a blob of this name exists. Azure
checks the MD5 of each part, but keeps no CRC32C. Only the SDK repeats requests. Each creation has
its own id, so that the blob can be recognized if the response was lost.

Memory: that of rsm.storage.uploads.part_senders, the range being read, and a page of a listing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobProperties,
    ContainerClient,
    ExponentialRetry,
)

from rsm.segment.errors import InvalidConfigError, RetriableError, TieredStorageError
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.azure.errors import is_past_the_end, is_taken, store_error
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.chunk_storage import (
    Capabilities,
    ChunkInfo,
    Concat,
    RequestObserver,
    ignore_request,
)
from rsm.storage.names import check_name, is_name, sort_key
from rsm.storage.object_metadata import (
    IDENTIFIER_NAMES,
    creation_of,
    decode_attributes,
    encode_metadata,
)
from rsm.storage.object_storage import ObjectChunkStorage
from rsm.storage.uploads.part_senders import PartSenders
from rsm.storage.uploads.parts import PartReader

_CAPABILITIES = Capabilities(
    can_append=False,
    can_truncate=False,
    concat=Concat.NONE,
    has_inline_attributes=True,
    has_stored_checksum=False,
)
_MAX_NAME_CHARACTERS = 1024
_MAX_SINGLE_GET_BYTES = 64 << 20


class AzureChunkStorage(ObjectChunkStorage):
    """Stores chunks in the container of `settings`. Thread-safe. Opening sends no request."""

    unsupported = "cannot change or join chunks: the Azure store supports neither"

    def __init__(
        self, settings: AzureSettings, *, observe: RequestObserver = ignore_request
    ) -> None:
        timeout_s = self._read_timeout_s = settings.attempt_timeout_ms / 1000
        self._observe = observe
        try:
            self._container = ContainerClient.from_connection_string(
                settings.connection_string,
                settings.container,
                connection_timeout=timeout_s,
                read_timeout=timeout_s,
                retry_policy=ExponentialRetry(
                    initial_backoff=1, increment_base=2, retry_total=settings.max_attempts - 1
                ),
                raw_request_hook=lambda sent: observe(sent.http_request.method),
                max_single_get_size=_MAX_SINGLE_GET_BYTES,
                # No upload reaches this limit: this class decides which content is one request.
                max_single_put_size=settings.upload_memory_bytes + settings.part_bytes,
            )
        except ValueError as error:
            raise InvalidConfigError(
                "the connection string is invalid",
                container=settings.container,
                advice="Copy it from the access keys of the storage account",
            ) from error
        self._senders = PartSenders(
            "azure-upload",
            part_bytes=settings.part_bytes,
            memory_bytes=settings.upload_memory_bytes,
            stream_memory_bytes=settings.stream_memory_bytes,
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
        reader = PartReader(source, name)
        creation = uuid4().hex
        metadata = encode_metadata(attributes or {}, creation=creation, names=IDENTIFIER_NAMES)
        with self._errors_of(name):
            try:
                if self._senders.is_one_part(source, reader):
                    self._put(name, reader, metadata)
                else:
                    lengths = self._senders.lengths(source, reader)
                    self._put_in_blocks(name, reader, lengths, metadata)
            except HttpResponseError as error:
                if not is_taken(error) or not self._is_own_blob(name, creation):
                    raise
        return reader.checksum

    def concat(self, target: str, sources: Sequence[str]) -> None:
        raise self._refusal(target)

    def info(self, name: str) -> ChunkInfo:
        found = self._look_up(name)
        attributes = decode_attributes(found.metadata or {}, name=name, names=IDENTIFIER_NAMES)
        return _info(found, attributes=attributes)

    def delete(self, name: str) -> None:
        self._check_name(name)
        with self._errors_of(name):
            self._container.delete_blob(name, delete_snapshots="include")

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        after_key = sort_key(after)
        with self._errors_of(prefix):
            for found in self._container.list_blobs(name_starts_with=prefix or None):
                if sort_key(found.name) > after_key and is_name(found.name):
                    yield _info(found, attributes={})

    def check_access(self) -> None:
        with self._errors_of(""):
            next(iter(self._container.list_blobs(results_per_page=1)), None)

    def close(self) -> None:
        self._senders.close()
        self._container.close()

    def _put(self, name: str, reader: PartReader, metadata: dict[str, str]) -> None:
        with self._senders.only_part(reader) as content:
            try:
                self._container.upload_blob(
                    name,
                    bytes(content),
                    length=len(content),
                    overwrite=False,
                    metadata=metadata,
                    validate_content=True,
                )
            except HttpResponseError as error:
                if not is_taken(error) or self.exists(name):
                    raise
                # Azure keeps the blocks of an aborted upload for a week; they occupy the name.
                blob, block_id = self._container.get_blob_client(name), _block_id(uuid4().hex, 0)
                _stage(blob, block_id, content)
                _commit(blob, [block_id], metadata)

    def _put_in_blocks(
        self, name: str, reader: PartReader, lengths: Iterable[int], metadata: dict[str, str]
    ) -> None:
        blob = self._container.get_blob_client(name)
        upload_id = uuid4().hex  # This keeps the blocks of concurrent uploads to this name apart.
        blocks: dict[int, str] = {}

        def stage(number: int, content: bytearray) -> None:
            blocks[number] = _block_id(upload_id, number)
            _stage(blob, blocks[number], content)

        self._senders.send(reader, lengths, stage)
        _commit(blob, [blocks[number] for number in sorted(blocks)], metadata)

    def _is_own_blob(self, name: str, creation: str) -> bool:
        """Return whether an earlier attempt of the same request created the blob."""
        try:
            found = self._look_up(name).metadata or {}
        except TieredStorageError:
            return False
        return creation_of(found, names=IDENTIFIER_NAMES) == creation

    def _check_name(self, name: str) -> None:
        check_name(name)
        if len(name) > _MAX_NAME_CHARACTERS or "\\" in name:  # Azure converts it to a slash
            raise InvalidConfigError(
                "the chunk name is invalid: it exceeds 1024 characters or contains a backslash",
                name=name,
            )

    def _look_up(self, name: str) -> BlobProperties:
        self._check_name(name)
        with self._errors_of(name):
            return self._container.get_blob_client(name).get_blob_properties()

    def _read(self, name: str, positions: ByteRange) -> bytes:
        limit = _ResponseLimit(name, self._read_timeout_s, self._observe)
        with self._errors_of(name):
            try:
                response = self._container.download_blob(
                    name,
                    offset=positions.start_position,
                    length=len(positions),
                    raw_request_hook=limit.begin,
                )
                content = response.readall()
            except HttpResponseError as error:
                if is_past_the_end(error):
                    return b""
                raise
        return content

    @contextmanager
    def _errors_of(self, name: str) -> Iterator[None]:
        """Convert the SDK's errors."""
        try:
            yield
        except AzureError as error:
            container = self._container.container_name
            raise store_error(error, name=name, container=container) from error


class _ResponseLimit:
    """Limits the time of each response of one read: the SDK passes on only complete responses."""

    def __init__(self, name: str, timeout_s: float, observe: RequestObserver) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._observe = observe

    def begin(self, sent: PipelineRequest[Any]) -> None:
        """Observe the first attempt of a request; apply the limit to it and to its repetitions."""
        self._observe(sent.http_request.method)
        sent.context["response_callback"] = self._limit

    def _limit(self, response: PipelineResponse[Any, Any]) -> None:
        received = response.http_response.internal_response
        received.raw = _LimitedBody(received.raw, self._name, self._timeout_s)


class _LimitedBody:
    """Presents urllib3's response, which the SDK reads; ends it at its deadline."""

    def __init__(self, body: Any, name: str, timeout_s: float) -> None:  # noqa: ANN401 - as the SDK
        self._body = body
        self._name = name
        self._deadline_s = time.monotonic() + timeout_s

    def __getattr__(self, name: str) -> object:
        return getattr(self._body, name)

    def stream(self, *args: object, **options: object) -> Iterator[bytes]:
        """Yield the pieces of the body. Raises RetriableError at the deadline."""
        for piece in self._body.stream(*args, **options):
            if time.monotonic() > self._deadline_s:
                raise RetriableError(
                    "cannot read the chunk: the store responds too slowly", name=self._name
                )
            yield piece


def _info(found: BlobProperties, *, attributes: Mapping[str, str]) -> ChunkInfo:
    return ChunkInfo(
        name=found.name,
        length_bytes=found.size,
        last_modified_ms=int(found.last_modified.timestamp() * 1000),
        attributes=attributes,
    )


def _block_id(upload_id: str, number: int) -> str:
    """Return a block's id. Azure requires that all ids of a blob have the same length."""
    return f"{upload_id}-{number:06}"


def _stage(blob: BlobClient, block_id: str, content: bytearray) -> None:
    blob.stage_block(block_id, bytes(content), length=len(content), validate_content=True)


def _commit(blob: BlobClient, block_ids: Sequence[str], metadata: dict[str, str]) -> None:
    blob.commit_block_list(
        [BlobBlock(each) for each in block_ids],
        metadata=metadata,
        match_condition=MatchConditions.IfMissing,
    )
