"""A real S3 server on this machine: versitygw over a directory.

`make services` builds it. Users create their own buckets; a bucket cannot have the keys `a` and
`a/b` at once.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

from tests.services.server_process import ServerProcess
from tests.services.service import Needs, ServiceError, installed

_PROGRAM = Path(__file__).resolve().parents[2] / "build" / "versitygw" / "versitygw"
NEEDS = Needs(installed=(_PROGRAM,))
_REGION = "us-east-1"
ACCESS_KEY = "access-key"
SECRET_KEY = "secret-key-of-tests"  # noqa: S105 - of a server that only tests reach


class S3Server(ServerProcess):
    """A server that runs within its `with` block; can be stopped and started again.

    Not thread-safe.
    """

    name = "versitygw"

    def __init__(self, directory: Path) -> None:
        """Keep objects below `directory`, which is created."""
        super().__init__(directory)
        self._data = self._directory / "buckets"
        self._users = self._directory / "users"
        for each in (self._data, self._users):
            each.mkdir()

    def stop(self) -> None:
        """Stop the server; all objects stay."""
        if self._process is not None:
            self._process.terminate()
            self._process = None

    def client(self, access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY) -> Any:
        """Return a client of the SDK with these credentials."""
        session = boto3.session.Session(
            aws_access_key_id=access_key, aws_secret_access_key=secret_key, region_name=_REGION
        )
        return session.client("s3", endpoint_url=self.url)

    def bucket_directory(self, name: str) -> Path:
        """Return the directory of a bucket's objects; tests may create files there, too."""
        return self._data / name

    def create_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        self.client().create_bucket(Bucket=name)

    def create_user(self, access_key: str, secret_key: str) -> None:
        """Create a user who has only the rights that a bucket's policy gives.

        Raises ServiceError.
        """
        login = ("--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", _REGION)
        user = ("--access", access_key, "--secret", secret_key, "--role", "user")
        self._run_tool("admin", *login, "--endpoint-url", self.url, "create-user", *user)

    def set_bucket_policy(self, bucket: str, policy: str) -> None:
        """Replace a bucket's policy, a JSON text with principals."""
        self.client().put_bucket_policy(Bucket=bucket, Policy=policy)

    def _run_tool(self, *arguments: str) -> None:
        """Run the program once with these arguments, next to the server. Raises ServiceError."""
        command = [installed(_PROGRAM), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"{self.name} {arguments[0]} failed: {done.stdout}{done.stderr}")

    def _command(self) -> Sequence[str]:
        return [installed(_PROGRAM), *self._arguments()]

    def _arguments(self) -> Sequence[str]:
        """Return the arguments of the program, wherever it runs."""
        listen = ("--port", f"127.0.0.1:{self.port}", "--region", _REGION)
        users = ("--iam-dir", str(self._users), "--keep-alive", "--quiet")
        return [*listen, *users, "posix", str(self._data)]

    def _environment(self) -> Mapping[str, str]:
        return {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}


def credentials_environment(
    access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY
) -> dict[str, str]:
    """Return variables with credentials for the SDK's default chain; none are this machine's."""
    return {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_DEFAULT_REGION": _REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
