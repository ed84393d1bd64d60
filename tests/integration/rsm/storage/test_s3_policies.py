"""The IAM policies of deploy/s3: each role works with just its own, on a server that applies it.

The server has no policies of users. So the bucket's policy has the same statements, with the user
as principal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ranges import ByteRange
from rsm.storage.probe import ProbeResult, probe
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.sources import PiecesSource, source_of
from tests.services.s3 import S3Server, credentials_environment

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
    """Opens the bucket as a role; the set has the names of the requests that were sent."""
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
        with suppress(TieredStorageError):  # the server keeps no such rules
            storage.expiry_rules()

    assert {each.verb: each.problem for each in found if each.result is ProbeResult.FAILED} == {}
    assert {action for each in requests for action in _ACTIONS_OF[each]} == _actions(role)


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


def _break_off_an_upload(storage: S3ChunkStorage, name: str) -> None:
    def fail(number: int) -> None:
        if number == 6:
            raise RetriableError("the source ended")

    source = PiecesSource(pieces=(b"x" * _MIB,) * 8, before_piece=fail)
    with pytest.raises(RetriableError, match="the source ended"):
        storage.create_with_content(name, source)
