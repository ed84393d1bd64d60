"""Parts of an unfinished upload are copied by the store instead of sent again (PIP-76)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.local_segment import ContentReuse
from rsm.segment.ranges import ByteRange
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.multipart import OF_THE_WHOLE, MultipartUpload, upload_ids
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.sources import failing_source
from tests.services.http_faults import Fault, FaultyProxy
from tests.services.s3 import S3Server

PART = 5 << 20
WHOLE = ByteRange(start_position=0, end_position=1 << 40)
CONTENT = b"".join(bytes([65 + number]) * PART for number in range(4)) + b"the rest"


@dataclass(slots=True, kw_only=True)
class Reused:
    """Content of unknown length, and what the store reports of the uploads in `names`."""

    content: bytes
    names: tuple[str, ...] = ()
    before_part: Callable[[int], None] = lambda _number: None
    sizes: list[int] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    length_bytes: None = None
    reuse: ContentReuse = field(init=False)

    def __post_init__(self) -> None:
        self.reuse = ContentReuse(
            names=self.names, reused=self.sizes.append, unused=self.unused.append
        )

    def chunks(self) -> Iterator[memoryview]:
        for number, position in enumerate(range(0, len(self.content), PART)):
            self.before_part(number)
            yield memoryview(self.content)[position : position + PART]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The bucket, and the requests that were sent to it, in order."""

    storage: S3ChunkStorage
    sent: list[str]

    @property
    def requests(self) -> Counter[str]:
        """How many requests of each kind were sent."""
        return Counter(self.sent)

    def ended_first(self, operation: str) -> bool:
        """Return whether `operation`, which ends an upload, came before the new upload."""
        return self.sent.index(operation) < self.sent.index("create_multipart_upload")

    def left(self, name: str, content: bytes = CONTENT) -> None:
        """Leave an unfinished upload with all whole parts, as a killed process does."""
        looks = {"ChecksumAlgorithm": "CRC32C", "ChecksumType": OF_THE_WHOLE}
        started = self.storage._bucket.ask("create_multipart_upload", Key=name, **looks)
        upload = MultipartUpload(self.storage._bucket, name, started["UploadId"])
        for number in range(1, len(content) // PART + 1):
            upload.put(number, content[(number - 1) * PART : number * PART])

    def broke_off(self, name: str, names: tuple[str, ...]) -> None:
        """Leave an unfinished upload, by a creation that fails after reusing all whole parts."""

        def fail(number: int) -> None:
            if number == len(CONTENT) // PART:
                raise RetriableError("the source broke off")

        source = Reused(content=CONTENT, names=names, before_part=fail)
        with pytest.raises(RetriableError, match="broke off"):
            self.storage.create_with_content(name, source)

    def created(self, source: Reused) -> str:
        """Create an object; count only the requests of its creation."""
        name = f"new/{uuid4()}"
        self.sent.clear()
        self.storage.create_with_content(name, source)
        assert self.storage.read_range(name, WHOLE) == source.content
        return name

    def upload_of(self, name: str) -> MultipartUpload:
        """Return the unfinished upload of an object, as its own process has it."""
        bucket = self.storage._bucket
        (upload_id,) = upload_ids(bucket, name)
        return MultipartUpload(bucket, name, upload_id)


@pytest.fixture
def bucket(s3_settings: S3Settings) -> Iterator[Bucket]:
    sent: list[str] = []
    storage = S3ChunkStorage(S3Bucket(s3_settings, observe=sent.append))
    yield Bucket(storage=storage, sent=sent)
    for each in storage._bucket.ask("list_multipart_uploads").get("Uploads", ()):
        storage.discard_uploads(each["Key"])
    storage.delete_many([info.name for info in storage.list("")])
    storage.close()


@pytest.fixture
def name() -> str:
    return f"old/{uuid4()}"


def test_creation_when_an_upload_has_the_same_parts_then_the_store_copies_them(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    source = Reused(content=CONTENT, names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], bucket.requests["upload_part_copy"]) == (1, 1)
    assert bucket.ended_first("complete_multipart_upload")
    assert (source.sizes, source.unused) == ([4 * PART], [name])
    assert bucket.storage.read_range(name, WHOLE) == CONTENT[: 4 * PART]


def test_creation_when_the_second_part_differs_then_it_and_the_later_ones_are_sent(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name, CONTENT[:PART] + b"?" + CONTENT[PART + 1 :])
    source = Reused(content=CONTENT, names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], bucket.requests["upload_part_copy"]) == (4, 1)
    assert (source.sizes, source.unused) == ([PART], [name])


def test_creation_when_the_first_part_differs_then_all_is_sent_after_the_upload_was_aborted(
    bucket: Bucket, name: str
) -> None:
    """R23: the upload's own process can no longer send a part."""
    bucket.left(name, b"?" + CONTENT[1:])
    upload = bucket.upload_of(name)
    source = Reused(content=CONTENT, names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes, source.unused) == (5, [], [name])
    assert (bucket.requests["abort_multipart_upload"], bucket.requests["list_parts"]) == (1, 1)
    assert bucket.ended_first("abort_multipart_upload")
    with pytest.raises(NotFoundError):
        upload.put(5, b"late")
    assert not bucket.storage.exists(name)


def test_creation_when_it_breaks_off_before_any_other_part_then_the_upload_stays_usable(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)

    def fail(number: int) -> None:
        if number == 2:
            raise RetriableError("the source broke off")

    broken = Reused(content=CONTENT, names=(name,), before_part=fail)
    with pytest.raises(RetriableError, match="broke off"):
        bucket.storage.create_with_content("new/broken", broken)
    source = Reused(content=CONTENT, names=(name,))

    assert (broken.unused, upload_ids(bucket.storage._bucket, "new/broken")) == ([], [])
    bucket.created(source)
    assert source.sizes == [4 * PART]


def test_creation_when_the_content_is_shorter_then_only_its_parts_are_used(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    source = Reused(content=CONTENT[: 2 * PART + 3], names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes) == (1, [2 * PART])


def test_creation_when_it_has_no_more_than_the_upload_then_nothing_is_sent(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    source = Reused(content=CONTENT[: 3 * PART], names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes) == (0, [3 * PART])


def test_creation_when_content_leaves_the_lineage_then_nothing_from_there_on_is_used(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    source = Reused(content=CONTENT, names=(name,))
    source.reuse.end_at(2 * PART + 1)

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes) == (3, [2 * PART])


def test_creation_when_the_first_name_has_no_upload_then_the_second_one_is_used(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    source = Reused(content=CONTENT, names=("old/none", name, "old/other"))

    bucket.created(source)

    assert source.sizes == [4 * PART]
    assert sorted(source.unused) == sorted(["old/none", name, "old/other"])


def test_creation_when_the_upload_began_with_a_copy_then_its_large_part_is_used(
    bucket: Bucket, name: str
) -> None:
    """A process that restarts twice in a row."""
    bucket.left(name)
    second = f"old/{uuid4()}"
    bucket.broke_off(second, (name,))
    source = Reused(content=CONTENT, names=(second,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes) == (1, [4 * PART])


def test_creation_when_a_large_part_differs_in_its_midst_then_the_next_attempt_sends_all(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    second = f"old/{uuid4()}"
    bucket.broke_off(second, (name,))
    other = CONTENT[:PART] + b"?" + CONTENT[PART + 1 :]
    source = Reused(content=other, names=(second,))

    with pytest.raises(RetriableError, match="the next attempt sends all"):
        bucket.storage.create_with_content("new/differs", source)

    assert (source.sizes, source.unused) == ([], [second])
    assert upload_ids(bucket.storage._bucket, second) == []
    assert not bucket.storage.exists("new/differs")
    bucket.created(Reused(content=other))


def test_creation_when_the_upload_was_completed_then_all_is_sent(bucket: Bucket, name: str) -> None:
    """The upload's own process was faster."""
    bucket.left(name)
    upload = bucket.upload_of(name)
    upload.put(1, b"the only part")
    upload.complete()
    source = Reused(content=CONTENT, names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes, source.unused) == (5, [], [name])
    assert bucket.storage.read_range(name, WHOLE) == b"the only part"


def test_creation_when_the_upload_is_completed_after_the_listing_then_the_next_attempt_sends_all(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    upload = bucket.upload_of(name)

    def complete(number: int) -> None:
        if number == 2:
            upload.put(1, b"the only part")
            upload.complete()

    source = Reused(content=CONTENT, names=(name,), before_part=complete)

    with pytest.raises(RetriableError, match="the next attempt sends all"):
        bucket.storage.create_with_content("new/late", source)

    assert (source.sizes, source.unused) == ([], [name])
    assert bucket.storage.read_range(name, WHOLE) == b"the only part"
    bucket.created(Reused(content=CONTENT, names=(name,)))


def test_creation_when_a_part_is_sent_again_after_the_listing_then_the_completion_is_refused(
    bucket: Bucket, name: str
) -> None:
    """The completion names each part by its ETag."""
    bucket.left(name)
    upload = bucket.upload_of(name)

    def overwrite(number: int) -> None:
        if number == 2:
            upload.put(1, b"x" * PART)

    source = Reused(content=CONTENT, names=(name,), before_part=overwrite)

    with pytest.raises(RetriableError, match="the next attempt sends all"):
        bucket.storage.create_with_content("new/overwritten", source)

    assert (source.sizes, source.unused) == ([], [name])
    assert upload_ids(bucket.storage._bucket, name) == []
    assert not bucket.storage.exists(name)
    assert not bucket.storage.exists("new/overwritten")


def test_creation_when_the_object_is_deleted_before_the_copy_then_the_next_attempt_sends_all(
    s3_settings: S3Settings, bucket: Bucket, name: str
) -> None:
    bucket.left(name)

    def delete(operation: str) -> None:
        if operation == "upload_part_copy":
            bucket.storage.delete(name)

    other = S3ChunkStorage(S3Bucket(s3_settings, observe=delete))
    source = Reused(content=CONTENT, names=(name,))

    with closing(other), pytest.raises(RetriableError, match="the next attempt sends all"):
        other.create_with_content("new/deleted", source)

    assert (source.sizes, source.unused) == ([], [name])
    assert not bucket.storage.exists("new/deleted")


def test_creation_when_copies_succeed_but_no_response_arrives_then_one_attempt_fails_not_each(
    s3_server: S3Server, s3_settings: S3Settings, bucket: Bucket, name: str
) -> None:
    """The failed attempt's own upload has the copy, and is offered to the next one."""
    bucket.left(name)
    first, second = Reused(content=CONTENT, names=(name,)), f"new/{uuid4()}"

    with FaultyProxy(s3_server.port) as proxy:
        proxy.expect(*[Fault(method="PUT", path=second, lost=True)] * 3)
        storage = S3ChunkStorage(S3Bucket(replace(s3_settings, endpoint_url=proxy.url)))
        with closing(storage):
            with pytest.raises(RetriableError, match="the next attempt sends all"):
                storage.create_with_content(second, first)
            other = S3ChunkStorage(S3Bucket(s3_settings))
            assert upload_ids(other._bucket, second) == []
            other.close()
            left = f"old/{uuid4()}"
            bucket.left(left)
            source = Reused(content=CONTENT, names=(second, left))
            storage.create_with_content("new/third", source)

    assert (source.sizes, sorted(source.unused)) == ([], sorted([second, left]))
    assert upload_ids(bucket.storage._bucket, left) == []
    assert bucket.storage.read_range("new/third", WHOLE) == CONTENT


def test_creation_when_several_uploads_are_unfinished_then_the_one_with_most_is_used(
    bucket: Bucket, name: str
) -> None:
    """The other uploads are aborted, also one of the same object."""
    short = f"old/{uuid4()}"
    bucket.left(short, CONTENT[:PART])
    bucket.left(name, CONTENT[:PART])
    bucket.left(name)
    source = Reused(content=CONTENT, names=(short, name))

    bucket.created(source)

    assert (source.sizes, sorted(source.unused)) == ([4 * PART], sorted([short, name]))
    assert bucket.requests["abort_multipart_upload"] == 2
    assert bucket.ended_first("abort_multipart_upload")
    assert upload_ids(bucket.storage._bucket, short) == []
    assert upload_ids(bucket.storage._bucket, name) == []


def test_creation_when_uploads_cannot_be_aborted_then_all_is_created_after_one_trial(
    s3_server: S3Server,
    s3_settings: S3Settings,
    bucket: Bucket,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    others = [f"old/{uuid4()}" for _ in range(3)]
    for each in (name, *others):
        bucket.left(each, CONTENT if each == name else CONTENT[:PART])
    source = Reused(content=CONTENT, names=(name, *others))

    denied = Fault(method="DELETE", path="uploadId", status=403, code="AccessDenied")
    with FaultyProxy(s3_server.port) as proxy:
        proxy.expect(*[denied] * 3)
        storage = S3ChunkStorage(S3Bucket(replace(s3_settings, endpoint_url=proxy.url)))
        with closing(storage):
            storage.create_with_content("new/aborts-fail", source)
        assert proxy.unused() == 2

    assert (source.sizes, sorted(source.unused)) == ([4 * PART], sorted([name, *others]))
    assert len([each for each in others if upload_ids(bucket.storage._bucket, each)]) == 3
    assert caplog.text.count("cannot abort a multipart upload") == 1


def test_creation_when_the_only_part_is_small_then_the_store_copies_it(
    bucket: Bucket, name: str
) -> None:
    """S3 copies no range of an object below 5 MB."""
    bucket.left(name, b"")
    bucket.upload_of(name).put(1, b"small")
    source = Reused(content=b"small", names=(name,))

    bucket.created(source)

    assert (bucket.requests["upload_part"], source.sizes) == (0, [5])


def test_own_process_when_its_upload_was_used_then_its_late_part_and_its_end_change_nothing(
    bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    upload = bucket.upload_of(name)
    upload.put(1, CONTENT[:PART])
    bucket.created(Reused(content=CONTENT, names=(name,)))

    with pytest.raises(NotFoundError):
        upload.put(5, b"late")
    with suppress(ClientError):  # a store may answer a repeated completion like the first
        upload.complete()
    assert bucket.storage.read_range(name, WHOLE) == CONTENT[: 4 * PART]


def test_failed_creation_when_nothing_may_be_used_again_then_its_upload_is_aborted(
    bucket: Bucket, name: str
) -> None:
    with pytest.raises(RetriableError, match="the source broke"):
        bucket.storage.create_with_content(name, failing_source(*[b"x" * PART] * 4))

    assert upload_ids(bucket.storage._bucket, name) == []


@pytest.mark.parametrize(("code", "is_kept"), [("AccessDenied", False), ("InternalError", True)])
def test_failed_creation_when_uploads_are_not_listed_then_its_own_is_kept_unless_that_is_forbidden(
    s3_server: S3Server,
    s3_settings: S3Settings,
    bucket: Bucket,
    name: str,
    code: str,
    *,
    is_kept: bool,
) -> None:
    """Without the right to list uploads, no process could abort this one later."""
    status = 500 if is_kept else 403

    def fail(number: int) -> None:
        if number == 2:
            proxy.expect(*[Fault(method="GET", path="uploads", status=status, code=code)] * 3)
            raise RetriableError("the source broke off")

    source = Reused(content=CONTENT, before_part=fail)
    with FaultyProxy(s3_server.port) as proxy:
        storage = S3ChunkStorage(S3Bucket(replace(s3_settings, endpoint_url=proxy.url)))
        with closing(storage), pytest.raises(RetriableError, match="broke off"):
            storage.create_with_content(name, source)

    assert len(upload_ids(bucket.storage._bucket, name)) == is_kept


def test_creation_when_uploads_cannot_be_listed_now_then_all_is_sent_and_they_stay_usable(
    s3_server: S3Server, s3_settings: S3Settings, bucket: Bucket, name: str
) -> None:
    bucket.left(name)
    source = Reused(content=CONTENT, names=(name,))

    with FaultyProxy(s3_server.port) as proxy:
        proxy.expect(*[Fault(method="GET", path="uploads", status=500, code="InternalError")] * 3)
        storage = S3ChunkStorage(S3Bucket(replace(s3_settings, endpoint_url=proxy.url)))
        with closing(storage):
            storage.create_with_content("new/unlisted", source)

    assert (source.sizes, source.unused) == ([], [])
    assert bucket.storage.read_range("new/unlisted", WHOLE) == CONTENT
