"""The binding for Google's store on fake-gcs-server: the contracts, faults, wrong settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from rsm.segment.errors import RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.gcs.settings import PART_UNIT_BYTES, GcsSettings
from rsm.storage.gcs.storage import GcsChunkStorage
from rsm.storage.probe import ProbeResult, probe
from tests.contract.chunk_change_contract import ChunkChangeContract
from tests.contract.chunk_creation_contract import ChunkClosingContract, ChunkCreationContract
from tests.contract.ledger_offloader_contract import LedgerOffloaderContract
from tests.contract.sources import CountingSource, UnsizedSource, source_of
from tests.integration.rsm.storage.absent_roots import assert_never_not_found
from tests.services.gcs import GcsServer
from tests.services.http_faults import Fault, FaultyProxy
from tests.services.provider import ServiceProvider

BUCKET = "segments"
MIB = 1 << 20
WHOLE = ByteRange(start_position=0, end_position=1 << 40)


@pytest.fixture(scope="module")
def server(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GcsServer]:
    with services.gcs(tmp_path_factory.mktemp("gcs")) as server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture
def gcs_settings(server: GcsServer) -> GcsSettings:
    return GcsSettings(
        bucket=BUCKET,
        endpoint_url=server.url,
        is_anonymous=True,
        part_bytes=4 * MIB,
        attempt_timeout_ms=10_000,
    )


@pytest.fixture
def storage(gcs_settings: GcsSettings) -> Iterator[GcsChunkStorage]:
    """An empty bucket, emptied again after the test."""
    storage = GcsChunkStorage(gcs_settings)
    yield storage
    storage.delete_many([info.name for info in storage.list("")])
    storage.close()


@pytest.fixture
def proxy(server: GcsServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def spoilt(gcs_settings: GcsSettings, proxy: FaultyProxy) -> Iterator[GcsChunkStorage]:
    """The bucket, through `proxy`."""
    spoilt = GcsChunkStorage(replace(gcs_settings, endpoint_url=proxy.url))
    yield spoilt
    proxy.expect()
    spoilt.delete_many([info.name for info in spoilt.list("")])
    spoilt.close()


class TestGcsChunkCreation(ChunkCreationContract):
    pass


class TestGcsChunkClosing(ChunkClosingContract):
    pass


class TestGcsChunkChange(ChunkChangeContract):
    pass


class TestGcsLedgerOffloader(LedgerOffloaderContract):
    pass


def test_probe_when_the_bucket_is_there_then_what_is_needed_works(storage: GcsChunkStorage) -> None:
    steps = probe(storage, "probe", lambda: 0)

    assert [step for step in steps if step.result is ProbeResult.FAILED] == []
    assert not list(storage.list(""))


@pytest.mark.parametrize("length_bytes", [8 * MIB, 8 * MIB + 1, 11 * MIB])
def test_creation_when_it_is_in_parts_then_one_whole(
    storage: GcsChunkStorage, length_bytes: int
) -> None:
    content = (bytes(range(251)) * (length_bytes // 251 + 1))[:length_bytes]

    checksum = storage.create_with_content("a", source_of(content), attributes={"k": "v"})

    assert storage.read_range("a", WHOLE) == content
    assert storage.info("a").crc32c == checksum
    assert storage.info("a").attributes == {"k": "v"}


@pytest.mark.parametrize("length_bytes", [1, 8 * MIB, 8 * MIB + 1])
def test_creation_when_the_length_is_unknown_then_one_whole(
    storage: GcsChunkStorage, length_bytes: int
) -> None:
    """Also if the last part is full, so that only an empty part shows the end."""
    content = (bytes(range(251)) * (length_bytes // 251 + 1))[:length_bytes]

    checksum = storage.create_with_content("a", UnsizedSource(source=source_of(content)))

    assert storage.read_range("a", WHOLE) == content
    assert storage.info("a").crc32c == checksum


def test_creation_when_chunks_are_as_long_as_parts_then_each_is_acknowledged_by_the_store(
    gcs_settings: GcsSettings,
) -> None:
    """A chunk is acknowledged after the response to its part, before the next part is sent."""
    source = CountingSource(pieces=tuple(bytes([number]) * PART_UNIT_BYTES for number in range(3)))
    accepted_before: list[int] = []

    def note(method: str) -> None:
        if method == "PUT":
            accepted_before.append(sum(source.accepted) // PART_UNIT_BYTES)

    storage = GcsChunkStorage(replace(gcs_settings, part_bytes=PART_UNIT_BYTES), observe=note)

    storage.create_with_content("a", source)

    assert accepted_before == [0, 1, 2, 3]  # the last part is empty
    storage.delete("a")
    storage.close()


def test_creation_when_its_answer_is_lost_then_the_stored_object_is_recognized(
    spoilt: GcsChunkStorage, proxy: FaultyProxy
) -> None:
    proxy.expect(Fault(method="POST", path="upload", lost=True))

    spoilt.create_with_content("a", source_of(b"abc"))

    assert proxy.unused() == 0
    assert spoilt.read_range("a", WHOLE) == b"abc"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_creation_when_the_store_is_busy_then_it_is_repeated(
    spoilt: GcsChunkStorage, proxy: FaultyProxy, status: int
) -> None:
    """Scenario 94."""
    proxy.expect(Fault(method="POST", path="upload", status=status, body="{}"))

    spoilt.create_with_content("a", source_of(b"abc"))

    assert proxy.requests.count("POST") == 2


def test_requests_when_one_is_repeated_then_the_observer_has_all_that_the_server_has(
    gcs_settings: GcsSettings, proxy: FaultyProxy
) -> None:
    sent: list[str] = []
    observed = GcsChunkStorage(replace(gcs_settings, endpoint_url=proxy.url), observe=sent.append)
    proxy.expect(Fault(method="POST", path="upload", status=503, body="{}"))

    observed.create_with_content("a", source_of(b"abc"))
    observed.delete("a")

    # The SDK also reads the bucket's metadata, at an unknown time.
    assert [each for each in sent if each != "GET"] == ["POST", "POST", "DELETE"]
    assert [each for each in proxy.requests if each != "GET"] == ["POST", "POST", "DELETE"]
    observed.close()


def test_read_when_the_answer_is_cut_then_it_is_read_on_from_there(
    spoilt: GcsChunkStorage, proxy: FaultyProxy
) -> None:
    """Scenario 94."""
    content = bytes(range(256)) * 4096 * 3
    spoilt.create_with_content("a", source_of(content))
    proxy.expect(Fault(method="GET", path="/o/a", cut_bytes=2 * MIB - 7))

    assert spoilt.read_range("a", WHOLE) == content
    assert proxy.unused() == 0


def test_any_request_when_the_bucket_is_not_there_then_never_not_found(
    gcs_settings: GcsSettings,
) -> None:
    """Scenario 116: nothing may be taken for deleted because the bucket is wrong."""
    storage = GcsChunkStorage(replace(gcs_settings, bucket="of-nobody"))

    assert_never_not_found(storage, "the bucket does not exist")


@pytest.mark.parametrize(
    ("status", "message"), [(401, "credentials"), (403, "a permission is missing")]
)
def test_check_access_when_the_store_refuses_then_one_clear_error_and_it_heals_without_restart(
    spoilt: GcsChunkStorage, proxy: FaultyProxy, status: int, message: str
) -> None:
    """Scenario 97."""
    proxy.expect(Fault(method="GET", path="/o?", status=status, body="{}"))

    with pytest.raises(RetriableError, match=message):
        spoilt.check_access()
    spoilt.check_access()


def test_read_when_the_store_is_silent_then_it_ends_at_its_deadline(
    gcs_settings: GcsSettings, proxy: FaultyProxy
) -> None:
    proxy.expect(Fault(method="GET", path="/o/a", hold=True))
    hasty = replace(
        gcs_settings, endpoint_url=proxy.url, attempt_timeout_ms=200, retry_timeout_ms=0
    )

    with pytest.raises(RetriableError, match="request to the store failed"):
        GcsChunkStorage(hasty).read_range("a", WHOLE)


def test_check_access_when_the_key_is_valid_again_then_it_recovers_without_restart(
    gcs_settings: GcsSettings, proxy: FaultyProxy, tmp_path: Path
) -> None:
    """Scenario 97: first no key, then an invalid one, then a valid one."""
    key_file = tmp_path / "key.json"
    keyed = replace(gcs_settings, is_anonymous=False, credentials_file=key_file)
    storage = GcsChunkStorage(keyed)

    with pytest.raises(RetriableError, match="cannot read the credentials"):
        storage.check_access()
    key_file.write_text(_service_account(f"{proxy.url}/token"))
    # More than one fault each, because the SDK also looks up the bucket's region.
    proxy.expect(*[Fault(method="POST", status=400, body='{"error": "invalid_grant"}')] * 4)
    with pytest.raises(RetriableError, match="cannot find credentials that the store accepts"):
        storage.check_access()
    granted = '{"access_token": "token", "expires_in": 3600, "token_type": "Bearer"}'
    proxy.expect(*[Fault(method="POST", status=200, body=granted)] * 4)
    storage.check_access()

    storage.close()


def _service_account(token_url: str) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return json.dumps({"client_email": "me@of-tests", "private_key": pem, "token_uri": token_url})
