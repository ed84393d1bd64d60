"""The IAM policies of deploy/s3: each role works with only its own policy, which a server applies.

The server has no policies of users. So the bucket's policy has the same statements, with the users
as principals.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.local_segment import ContentReuse, WrappedSource
from rsm.segment.ranges import ByteRange
from rsm.storage.probe import ProbeResult, probe
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.sources import PiecesSource, source_of
from tests.services.s3 import S3Server, credentials_environment
from tests.services.waiting import wait_until

_ROOM = Path(__file__).resolve().parents[4] / "deploy" / "s3"
_ROLES = sorted(path.stem for path in _ROOM.glob("*.json"))
_WRITERS = ("host", "repair")
_READERS = ("audit", "gateway")
_MIB = 1 << 20
_SECRET = "secret-key-of-the-role"  # noqa: S105 - of a server that only tests reach

# Source: "Actions, resources, and condition keys for Amazon S3" of the service authorization
# reference.
_ACTIONS_OF = {
    "abort_multipart_upload": {"s3:AbortMultipartUpload"},
    "complete_multipart_upload": {"s3:PutObject"},
    "create_multipart_upload": {"s3:PutObject"},
    "delete_object": {"s3:DeleteObject"},
    "delete_objects": {"s3:DeleteObject"},
    "get_bucket_lifecycle_configuration": {"s3:GetLifecycleConfiguration"},
    "get_object": {"s3:GetObject"},
    "head_object": {"s3:GetObject"},
    "list_multipart_uploads": {"s3:ListBucketMultipartUploads"},
    "list_objects_v2": {"s3:ListBucket"},
    "list_parts": {"s3:ListMultipartUploadParts"},
    "put_object": {"s3:PutObject"},
    "upload_part": {"s3:PutObject"},
    "upload_part_copy": {"s3:GetObject", "s3:PutObject"},
}

OpenAs = Callable[[str], tuple[S3ChunkStorage, set[str]]]


@pytest.fixture(scope="module")
def users(s3_server: S3Server, s3_bucket: str) -> dict[str, str]:
    """A user for each role, with the rights of its policy on the module's bucket."""
    users = {role: f"{role}-of-{s3_bucket}" for role in _ROLES}
    for user in users.values():
        s3_server.create_user(user, _SECRET)
    s3_server.set_bucket_policy(s3_bucket, json.dumps(_bucket_policy(s3_bucket, users)))
    return users


@pytest.fixture
def open_as(
    users: dict[str, str], s3_settings: S3Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenAs]:
    """A function that opens the bucket as a role; its set gets the names of sent requests."""
    with ExitStack() as opened:

        def open_bucket(role: str) -> tuple[S3ChunkStorage, set[str]]:
            for name, value in credentials_environment(users[role], _SECRET).items():
                monkeypatch.setenv(name, value)
            requests: set[str] = set()
            storage = S3ChunkStorage(S3Bucket(s3_settings, observe=requests.add))
            opened.callback(storage.close)
            return storage, requests

        yield open_bucket


def _policy(role: str) -> dict[str, Any]:
    policy: dict[str, Any] = json.loads((_ROOM / f"{role}.json").read_text())
    return policy


def _bucket_policy(bucket: str, users: dict[str, str]) -> dict[str, Any]:
    statements = []
    for role, user in users.items():
        for each in _policy(role)["Statement"]:
            resources = [name.replace("BUCKET", bucket) for name in each["Resource"]]
            changed = {"Resource": resources, "Principal": {"AWS": [user]}}
            statements.append({**each, **changed, "Sid": f"{role}{each['Sid']}"})
    return {"Version": "2012-10-17", "Statement": statements}


def _actions(role: str) -> set[str]:
    return {action for each in _policy(role)["Statement"] for action in each["Action"]}


@pytest.mark.parametrize("role", _WRITERS)
def test_role_that_writes_when_it_sends_all_requests_then_its_policy_allows_these_and_no_more(
    open_as: OpenAs, role: str
) -> None:
    storage, requests = open_as(role)

    found = probe(storage, f"{role}-probe", lambda: time.monotonic() * 1000)
    storage.create_with_content(f"{role}-one", source_of(b"x"))
    storage.delete(f"{role}-one")
    _break_off_an_upload(storage, f"{role}-two")
    storage.discard_uploads(f"{role}-two")
    if role == "host":
        assert _use_an_upload_again(storage, requests, f"{role}-three") == [5 * _MIB]
        with suppress(TieredStorageError):  # the server keeps no such rules
            storage.lifecycle_rules()

    assert {each.verb: each.problem for each in found if each.result is ProbeResult.FAILED} == {}
    assert {action for each in requests for action in _ACTIONS_OF[each]} == _actions(role)


def test_role_that_may_not_list_parts_when_it_creates_then_all_is_sent_and_logged_once(
    open_as: OpenAs, caplog: pytest.LogCaptureFixture
) -> None:
    """The policy of a repair job lacks the right, because the job streams nothing."""
    storage, requests = open_as("repair")

    with caplog.at_level(logging.INFO):
        first = _use_an_upload_again(storage, requests, "repair-three")
        second = _use_an_upload_again(storage, requests, "repair-four")

    assert (first, second) == ([], [])
    assert "upload_part_copy" not in requests
    noted = [each for each in caplog.records if "sending all bytes" in each.getMessage()]
    assert [each.levelname for each in noted] == ["INFO"]


@pytest.mark.parametrize("role", _READERS)
def test_role_that_reads_when_it_reads_then_sends_what_its_policy_allows_and_no_more(
    open_as: OpenAs, role: str
) -> None:
    writer, _ = open_as("host")
    writer.create_with_content(f"{role}-read", source_of(b"content"))
    storage, requests = open_as(role)

    storage.check_access()
    assert [each.name for each in storage.list(f"{role}-read")] == [f"{role}-read"]
    assert storage.info(f"{role}-read").length_bytes == len(b"content")
    whole = ByteRange(start_position=0, end_position=7)
    assert storage.read_range(f"{role}-read", whole) == b"content"

    assert {action for each in requests for action in _ACTIONS_OF[each]} == _actions(role)


@pytest.mark.parametrize("role", _READERS)
def test_role_that_reads_when_it_writes_or_deletes_then_is_denied(
    open_as: OpenAs, role: str
) -> None:
    writer, _ = open_as("host")
    writer.create_with_content(f"{role}-kept", source_of(b"content"))
    storage, _ = open_as(role)

    with pytest.raises(RetriableError, match="permission"):
        storage.create_with_content(f"{role}-new", source_of(b"x"))
    with pytest.raises(RetriableError, match="permission"):
        storage.delete(f"{role}-kept")
    assert [each.name for each in storage.list(f"{role}-kept")] == [f"{role}-kept"]
    assert [*storage.list(f"{role}-new")] == []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again(WrappedSource):
    """Content that may have been sent before, so that its parts can be reused."""

    reuse: ContentReuse
    length_bytes: None = None

    def chunks(self) -> Iterator[memoryview]:
        return self.source.chunks()


def _use_an_upload_again(storage: S3ChunkStorage, requests: set[str], name: str) -> list[int]:
    """Leave an upload, and create an object that reuses its part; return the reused sizes."""
    used: list[int] = []
    pieces = (b"x" * _MIB,) * 6
    requests.discard("upload_part")

    def fail(number: int) -> None:
        if number == 5:
            wait_until(lambda: "upload_part" in requests)
            raise RetriableError("the source ended")

    def content(names: tuple[str, ...], before: Callable[[int], None]) -> _Again:
        return _Again(
            source=PiecesSource(pieces=pieces, before_piece=before),
            reuse=ContentReuse(names=names, reused=used.append, unused=lambda _name: None),
        )

    with pytest.raises(RetriableError, match="the source ended"):
        storage.create_with_content(name, content((), fail))
    storage.create_with_content(f"{name}-again", content((name,), lambda _number: None))
    return used


def _break_off_an_upload(storage: S3ChunkStorage, name: str) -> None:
    def fail(number: int) -> None:
        if number == 6:
            raise RetriableError("the source ended")

    source = PiecesSource(pieces=(b"x" * _MIB,) * 8, before_piece=fail)
    with pytest.raises(RetriableError, match="the source ended"):
        storage.create_with_content(name, source)
