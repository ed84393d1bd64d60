"""The binding for Azure on Azurite: the contracts, and its errors for a wrong configuration."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from rsm.segment.errors import AlreadyExistsError, InvalidConfigError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.azure.storage import AzureChunkStorage
from rsm.storage.probe import ProbeResult, probe
from tests.contract.chunk_change_contract import ChunkChangeContract
from tests.contract.chunk_creation_contract import ChunkClosingContract, ChunkCreationContract
from tests.contract.ledger_offloader_contract import LedgerOffloaderContract
from tests.contract.sources import PiecesSource, UnsizedSource, source_of
from tests.integration.rsm.storage.absent_roots import assert_never_not_found
from tests.services.azure import AzureServer
from tests.services.http_faults import Fault, FaultyProxy
from tests.services.provider import ServiceProvider

CONTAINER = "segments"
MIB = 1 << 20


@pytest.fixture(scope="module")
def server(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AzureServer]:
    with services.azure(tmp_path_factory.mktemp("azure")) as server:
        server.create_container(CONTAINER)
        yield server


@pytest.fixture
def azure_settings(server: AzureServer) -> AzureSettings:
    return AzureSettings(
        connection_string=server.connection_string(),
        container=CONTAINER,
        part_bytes=MIB,
        attempt_timeout_ms=10_000,
        max_attempts=1,
    )


@pytest.fixture
def storage(azure_settings: AzureSettings) -> Iterator[AzureChunkStorage]:
    """An empty container, emptied again after the test."""
    storage = AzureChunkStorage(azure_settings)
    yield storage
    storage.delete_many([info.name for info in storage.list("")])
    storage.close()


class TestAzureChunkCreation(ChunkCreationContract):
    refused_names = frozenset({"back\\slash"})


class TestAzureChunkClosing(ChunkClosingContract):
    pass


class TestAzureChunkChange(ChunkChangeContract):
    pass


class TestAzureLedgerOffloader(LedgerOffloaderContract):
    pass


def test_probe_when_the_container_is_there_then_what_is_needed_works(
    storage: AzureChunkStorage,
) -> None:
    steps = probe(storage, "probe", lambda: 0)

    assert [step for step in steps if step.result is ProbeResult.FAILED] == []
    assert not list(storage.list(""))


def test_creation_when_an_aborted_upload_left_blocks_then_created_at_once(
    storage: AzureChunkStorage,
) -> None:
    """Azure keeps uncommitted blocks for a week, and meanwhile a put finds an existing blob."""

    def break_off(piece: int) -> None:
        if piece == 2:
            raise RetriableError("it broke off")

    broken = PiecesSource(pieces=(bytes(MIB),) * 3, before_piece=break_off)
    with pytest.raises(RetriableError, match="it broke off"):
        storage.create_with_content("a", broken)
    assert not storage.exists("a")

    storage.create_with_content("a", source_of(b"whole"), attributes={"k": "v"})

    assert storage.read_range("a", ByteRange(start_position=0, end_position=9)) == b"whole"
    assert storage.info("a").attributes == {"k": "v"}
    with pytest.raises(AlreadyExistsError):
        storage.create_with_content("a", source_of(b"other"))


@pytest.mark.parametrize("length_bytes", [MIB, MIB + 1, 3 * MIB])
def test_creation_when_it_is_in_parts_then_one_whole(
    storage: AzureChunkStorage, length_bytes: int
) -> None:
    content = bytes(range(251)) * (length_bytes // 251 + 1)

    storage.create_with_content("a", source_of(content[:length_bytes]), attributes={"k": "v"})

    whole = storage.read_range("a", ByteRange(start_position=0, end_position=1 << 40))
    assert whole == content[:length_bytes]
    assert storage.info("a").attributes == {"k": "v"}


@pytest.mark.parametrize("length_bytes", [1, 2 * MIB, 2 * MIB + 1])
def test_creation_when_the_length_is_unknown_then_one_whole(
    storage: AzureChunkStorage, length_bytes: int
) -> None:
    content = (bytes(range(251)) * (length_bytes // 251 + 1))[:length_bytes]

    storage.create_with_content("a", UnsizedSource(source=source_of(content)))

    whole = storage.read_range("a", ByteRange(start_position=0, end_position=1 << 40))
    assert whole == content


def test_creation_when_it_has_a_version_then_the_blobs_own_metadata_says_it(
    storage: AzureChunkStorage, server: AzureServer
) -> None:
    """Pulsar reads the version of an offloaded ledger there (PIP-17)."""
    version = {"s3managedledgeroffloaderformatversion": "1"}

    storage.create_with_content("a", source_of(b"content"), attributes=version)

    assert storage.info("a").attributes == version
    assert version.items() <= server.metadata_of(CONTAINER, "a").items()


def test_read_when_the_answer_is_cut_then_it_is_asked_for_again(
    storage: AzureChunkStorage, azure_settings: AzureSettings, server: AzureServer
) -> None:
    """Scenario 94."""
    content = bytes(range(256)) * 4096 * 3
    storage.create_with_content("a", source_of(content))
    with FaultyProxy(server.port) as proxy:
        proxy.expect(Fault(method="GET", cut_bytes=2 * MIB - 7))
        way = server.connection_string(url=proxy.url)
        spoilt = AzureChunkStorage(replace(azure_settings, connection_string=way, max_attempts=3))

        whole = spoilt.read_range("a", ByteRange(start_position=0, end_position=1 << 40))

        assert whole == content
        assert proxy.unused() == 0
        spoilt.close()


def test_requests_when_one_is_repeated_then_the_observer_has_all_that_the_server_has(
    azure_settings: AzureSettings, server: AzureServer
) -> None:
    sent: list[str] = []
    with FaultyProxy(server.port) as proxy:
        way = server.connection_string(url=proxy.url)
        observed = AzureChunkStorage(
            replace(azure_settings, connection_string=way, max_attempts=3), observe=sent.append
        )
        proxy.expect(Fault(method="PUT", status=503, code="ServerBusy"))

        observed.create_with_content("a", source_of(b"x" * (MIB + 1)))
        observed.info("a")
        observed.delete("a")

        assert sorted(sent) == sorted(proxy.requests)
        assert sorted(sent) == ["DELETE", "HEAD", "PUT", "PUT", "PUT", "PUT"]
        observed.close()


def test_any_request_when_the_container_is_not_there_then_never_not_found(
    azure_settings: AzureSettings,
) -> None:
    """Scenario 116: nothing may be taken for deleted because the container is wrong."""
    with closing(AzureChunkStorage(replace(azure_settings, container="of-nobody"))) as storage:
        assert_never_not_found(storage, "the container does not exist")


def test_check_access_when_the_key_is_wrong_then_one_clear_error(
    azure_settings: AzureSettings, server: AzureServer
) -> None:
    """Scenario 97."""
    key = base64.b64encode(b"another key").decode()
    wrong = replace(azure_settings, connection_string=server.connection_string(key))

    with (
        closing(AzureChunkStorage(wrong)) as storage,
        pytest.raises(RetriableError, match=r"denies this|credentials"),
    ):
        storage.check_access()


def test_open_when_the_connection_string_is_none_then_refused(
    azure_settings: AzureSettings,
) -> None:
    with pytest.raises(InvalidConfigError, match="the connection string is invalid"):
        AzureChunkStorage(replace(azure_settings, connection_string="nonsense"))
