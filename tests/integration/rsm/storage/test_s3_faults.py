"""S3 through a proxy that cuts, delays, loses and changes messages, and returns its own errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from rsm.segment.errors import AlreadyExistsError, CorruptError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from rsm.storage.uploads.piece_stream import PieceBuffer
from tests.contract.sources import source_of
from tests.services.http_faults import Fault, FaultyProxy
from tests.services.s3 import S3Server

MIB = 1 << 20
WHOLE = ByteRange(start_position=0, end_position=1 << 40)
THREE_PARTS = [b"x" * MIB] * 11


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def opened() -> list[S3ChunkStorage]:
    """The storage of all tests here, because it takes long to create a client."""
    return []


@pytest.fixture
def storage(
    s3_settings: S3Settings, proxy: FaultyProxy, opened: list[S3ChunkStorage]
) -> S3ChunkStorage:
    proxy.expect()
    if not opened:
        opened.append(S3ChunkStorage(S3Bucket(replace(s3_settings, endpoint_url=proxy.url))))
    return opened[0]


@pytest.fixture
def name() -> str:
    return f"d/{uuid4()}"


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (500, "InternalError")])
def test_creation_when_the_store_is_busy_then_it_is_repeated(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str, status: int, code: str
) -> None:
    """Scenario 94: the SDK repeats the request, with jittered pauses."""
    proxy.expect(Fault(method="PUT", status=status, code=code))

    storage.create_with_content(name, source_of(b"abc"))

    assert proxy.requests == ["PUT", "PUT"]
    assert storage.read_range(name, WHOLE) == b"abc"


def test_requests_when_the_store_is_busy_then_the_repeated_ones_are_observed_too(
    s3_settings: S3Settings, proxy: FaultyProxy, name: str
) -> None:
    sent: list[str] = []
    observed = S3ChunkStorage(
        S3Bucket(replace(s3_settings, endpoint_url=proxy.url), observe=sent.append)
    )
    proxy.expect(Fault(method="PUT", status=503, code="SlowDown"))

    observed.create_with_content(name, source_of(b"abc"))
    observed.read_range(name, WHOLE)

    assert sent == ["put_object", "put_object", "get_object"]
    assert proxy.requests == ["PUT", "PUT", "GET"]
    observed.close()


def test_read_when_the_store_is_busy_for_long_then_bounded_attempts_and_one_clear_error(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    """Scenario 94: the number of requests is bounded."""
    proxy.expect(*[Fault(method="GET", status=503, code="SlowDown")] * 9)

    with pytest.raises(RetriableError, match="asks for fewer requests"):
        storage.read_range(name, WHOLE)

    assert len(proxy.requests) == 3


@pytest.mark.parametrize("pieces", [[b"abc"], THREE_PARTS], ids=["one PUT", "parts"])
def test_creation_when_its_answer_is_lost_then_the_stored_object_is_recognized(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str, pieces: list[bytes]
) -> None:
    method = "PUT" if len(pieces) == 1 else "POST"
    path = "" if len(pieces) == 1 else "uploadId="
    proxy.expect(Fault(method=method, path=path, lost=True))

    storage.create_with_content(name, source_of(*pieces))

    assert proxy.unused() == 0
    assert storage.info(name).length_bytes == sum(map(len, pieces))


_STATED = "x-amz-checksum-crc32c"


@pytest.mark.parametrize(("stated", "looks"), [(None, 1), ("AAAAAA==", 0)])
def test_creation_when_the_answer_has_no_checksum_then_looked_at_and_a_wrong_one_is_corrupt(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str, stated: str | None, looks: int
) -> None:
    proxy.expect(Fault(method="PUT", answer_header=(_STATED, stated)))

    if stated is None:
        storage.create_with_content(name, source_of(b"abc"))
    else:
        with pytest.raises(CorruptError, match="differ from the written bytes"):
            storage.create_with_content(name, source_of(b"abc"))

    assert proxy.requests == ["PUT"] + ["HEAD"] * looks


def test_creation_when_another_ones_is_there_then_refused_even_if_it_was_repeated(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    storage.create_with_content(name, source_of(b"first"))
    proxy.expect(Fault(method="PUT", status=503, code="SlowDown"))

    with pytest.raises(AlreadyExistsError):
        storage.create_with_content(name, source_of(b"second"))

    assert storage.read_range(name, WHOLE) == b"first"


@pytest.mark.parametrize("pieces", [[b"abc"], THREE_PARTS], ids=["one PUT", "parts"])
def test_creation_when_a_byte_changes_on_its_way_then_refused_by_the_store(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str, pieces: list[bytes]
) -> None:
    proxy.expect(Fault(method="PUT", spoil=True))

    with pytest.raises(RetriableError, match="bytes changed in transit"):
        storage.create_with_content(name, source_of(*pieces))

    assert not storage.exists(name)


def test_creation_when_a_part_fails_for_good_then_the_upload_is_aborted(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    proxy.expect(Fault(method="PUT", path="partNumber=2", status=403, code="AccessDenied"))

    with pytest.raises(RetriableError, match="a permission is missing"):
        storage.create_with_content(name, source_of(*THREE_PARTS))

    assert proxy.requests.count("DELETE") == 1
    assert "Uploads" not in storage._bucket.ask("list_multipart_uploads", Prefix=name)
    assert not storage.exists(name)


def test_stream_when_a_part_fails_for_good_while_it_waits_then_it_ends_and_the_upload_is_aborted(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    proxy.expect(Fault(method="PUT", path="partNumber=1", status=403, code="AccessDenied"))
    content = PieceBuffer[int]()

    content.start(lambda: storage.create_with_content(name, content), name="stream")
    content.add(bytearray(5 * MIB))

    with pytest.raises(RetriableError, match="a permission is missing"):
        content.result(timeout_s=30)
    assert proxy.requests.count("DELETE") == 1
    assert "Uploads" not in storage._bucket.ask("list_multipart_uploads", Prefix=name)


def test_read_when_the_answer_is_cut_then_it_is_read_on_from_there(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    """Scenario 94: received bytes are not requested again."""
    content = bytes(range(256)) * 4096 * 3
    storage.create_with_content(name, source_of(content))
    proxy.expect(
        Fault(method="GET", cut_bytes=2 * MIB - 7), Fault(method="GET", cut_bytes=MIB // 2)
    )

    assert storage.read_range(name, WHOLE) == content
    assert proxy.requests == ["GET"] * 3
    assert proxy.sent_bytes < len(content) + 10_000


def test_read_when_every_answer_is_cut_then_a_bounded_number_of_requests(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    """Scenario 94."""
    storage.create_with_content(name, source_of(b"x" * MIB))
    proxy.expect(*[Fault(method="GET", cut_bytes=1_000)] * 9)

    with pytest.raises(RetriableError):
        storage.read_range(name, WHOLE)

    assert len(proxy.requests) == 3


def test_read_when_the_object_is_another_one_after_a_break_then_no_mixture(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    storage.create_with_content(name, source_of(b"x" * MIB))
    proxy.expect(
        Fault(method="GET", cut_bytes=1_000, then=lambda: _replace(storage, name, b"y" * MIB))
    )

    with pytest.raises(RetriableError, match="replaced"):
        storage.read_range(name, WHOLE)


def test_read_when_the_store_is_silent_then_it_ends_at_its_deadline(
    s3_settings: S3Settings, proxy: FaultyProxy, storage: S3ChunkStorage, name: str
) -> None:
    storage.create_with_content(name, source_of(b"abc"))
    proxy.expect(Fault(method="GET", hold=True))
    hasty = S3ChunkStorage(
        S3Bucket(
            replace(s3_settings, endpoint_url=proxy.url, attempt_timeout_ms=200, max_attempts=1)
        )
    )

    with pytest.raises(RetriableError, match="request to the store failed"):
        hasty.read_range(name, WHOLE)

    hasty.close()
    assert storage.read_range(name, WHOLE) == b"abc"


def test_delete_many_when_the_answer_names_errors_then_only_those_names_are_not_done(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    """Scenario 109: a successful response has errors for some keys."""
    body = (
        f"<DeleteResult><Error><Key>{name}-2</Key><Code>InternalError</Code>"
        f"<Message>It is lost</Message></Error></DeleteResult>"
    )
    proxy.expect(Fault(method="POST", status=200, body=body))

    outcomes = storage.delete_many([f"{name}-1", f"{name}-2", f"{name}-3"])

    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert "It is lost" in str(outcomes[1].error)


def test_delete_many_when_it_is_not_allowed_then_no_name_is_done(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    """Scenario 110: a bucket without the permission to delete."""
    proxy.expect(Fault(method="POST", status=403, code="AccessDenied"))

    outcomes = storage.delete_many([f"{name}-1", f"{name}-2"])

    assert [str(outcome.error).split(" (")[0] for outcome in outcomes] == [
        "the store denies this: a permission is missing: -"
    ] * 2


def test_check_access_when_the_clocks_differ_then_that_is_what_it_says(
    storage: S3ChunkStorage, proxy: FaultyProxy
) -> None:
    proxy.expect(Fault(method="GET", status=403, code="RequestTimeTooSkewed"))

    with pytest.raises(RetriableError, match="clock"):
        storage.check_access()


def test_exists_when_the_store_answers_a_bare_404_then_a_second_request_shows_more(
    storage: S3ChunkStorage, proxy: FaultyProxy, name: str
) -> None:
    """The 404 of a HEAD request may be about the bucket, so it does not prove a missing object."""
    proxy.expect(
        Fault(method="HEAD", status=404), Fault(method="GET", status=404, code="NoSuchBucket")
    )

    with pytest.raises(RetriableError, match="the bucket does not exist"):
        storage.exists(name)


def _replace(storage: S3ChunkStorage, name: str, content: bytes) -> None:
    storage.delete(name)
    storage.create_with_content(name, source_of(content))
