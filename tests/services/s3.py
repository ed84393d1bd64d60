"""A real S3 server on this machine: versitygw over a directory.

`make services` builds it. Buckets are made by their users; keys `a` and `a/b` don't go
together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import boto3

from tests.services.server_process import ServerProcess
from tests.services.service import Needs, installed

_PROGRAM = Path(__file__).resolve().parents[2] / "build" / "versitygw" / "versitygw"
NEEDS = Needs(installed=(_PROGRAM,))
_REGION = "us-east-1"
ACCESS_KEY = "access-key"
SECRET_KEY = "secret-key-of-tests"  # noqa: S105 - of a server that only tests reach


class S3Server(ServerProcess):
    """Runs within its `with` block; may be stopped and started again. Not thread-safe."""

    name = "versitygw"

    def __init__(self, directory: Path) -> None:
        """Objects are kept below `directory`, which is made."""
        super().__init__(directory)
        self._data = self._directory / "buckets"
        self._data.mkdir()

    def stop(self) -> None:
        """End it, with nothing lost."""
        if self._process is not None:
            self._process.terminate()
            self._process = None

    def bucket_directory(self, name: str) -> Path:
        """Where a bucket's objects are, as files that may also be made here."""
        return self._data / name

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket, by a client of its own."""
        session = boto3.session.Session(
            aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=_REGION
        )
        session.client("s3", endpoint_url=self.url).create_bucket(Bucket=name)

    def _command(self) -> Sequence[str]:
        command = [installed(_PROGRAM), "--port", f"127.0.0.1:{self.port}", "--region", _REGION]
        return [*command, "--keep-alive", "--quiet", "posix", str(self._data)]

    def _environment(self) -> Mapping[str, str]:
        return {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}


def credentials_environment() -> dict[str, str]:
    """What the SDK's default chain finds the credentials in, and nothing of this machine's own."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": _REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
