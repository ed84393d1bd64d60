"""Runs a broker with rolled segments, and an S3 server, for the benchmarks of the store."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import obstore
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from obstore.store import S3Store

from bench.dataset import TOPIC, BenchSizes, Dataset, produced_dataset
from rlm.facts.local_log import LocalLog
from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.services.s3 import S3Server, credentials_environment

BUCKET = "bench"
AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageStage:
    """A broker with rolled segments, an S3 server, and the numbers of requests by operation."""

    dataset: Dataset
    log: LocalLog
    server: S3Server
    sent: Counter[str] = field(default_factory=Counter)

    @property
    def total_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.log.rolled)

    def settings(self) -> Mapping[str, str]:
        """Return settings of `rlm run` for this store. The credentials are in the environment."""
        return {
            "rsm.config.storage.backend": "s3",
            "rsm.config.storage.s3.bucket.name": BUCKET,
            "rsm.config.storage.s3.endpoint.url": self.server.url,
            "rsm.config.storage.s3.path.style.access.enabled": "true",
        }

    def files(self) -> list[Path]:
        """Return the log files of the rolled segments, in order."""
        directory = self.dataset.cluster.broker.log_dirs[0] / f"{TOPIC}-0"
        return [directory / f"{each.offsets.start_offset:020d}.log" for each in self.log.rolled]

    def storage(self) -> S3ChunkStorage:
        """Return `rlm`'s S3 store, with default settings except for the address."""
        settings = S3Settings(bucket=BUCKET, endpoint_url=self.server.url, path_style=True)
        return S3ChunkStorage(S3Bucket(settings, observe=lambda name: self.sent.update([name])))

    def boto3_client(self) -> Any:  # noqa: ANN401 - boto3 makes its clients' classes at run time
        """Return a client with fast settings: the payload is not signed."""
        config = Config(
            s3={"addressing_style": "path", "payload_signing_enabled": False},
            max_pool_connections=64,
        )
        return boto3.session.Session().client("s3", endpoint_url=self.server.url, config=config)

    def obstore(self) -> S3Store:
        """Return a client of Rust's object_store library."""
        return S3Store(
            BUCKET,
            endpoint=self.server.url,
            client_options={"allow_http": True},
            virtual_hosted_style_request=False,
        )

    def empty(self) -> None:
        """Remove every object, and wait until all changes are on the disk."""
        client = self.boto3_client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            keys = [{"Key": found["Key"]} for found in page.get("Contents", ())]
            if keys:
                client.delete_objects(Bucket=BUCKET, Delete={"Objects": keys, "Quiet": True})
        os.sync()


@contextmanager
def storage_stage(sizes: BenchSizes, *, jvm_flags: tuple[str, ...] = ()) -> Iterator[StorageStage]:
    """Yield a ready stage; stop it and remove its files at the end."""
    os.environ.update(credentials_environment())
    with (
        produced_dataset(sizes, jvm_flags=jvm_flags) as dataset,
        S3Server(dataset.scratch / "s3") as server,
    ):
        server.create_bucket(BUCKET)
        log = dataset.source().local_log(dataset.partition())
        yield StorageStage(dataset=dataset, log=log, server=server)


def plain_uploads(stage: StorageStage) -> dict[str, Callable[[Path], object]]:
    """Return, for each plain client, a function that uploads a file under the file's name."""
    client, store = stage.boto3_client(), stage.obstore()
    transfer = TransferConfig(multipart_threshold=16 << 20, multipart_chunksize=16 << 20)

    def put_object(path: Path) -> None:
        client.put_object(Bucket=BUCKET, Key=path.name, Body=path.read_bytes())

    def upload_file(path: Path) -> None:
        client.upload_file(str(path), BUCKET, path.name, Config=transfer)

    def put(path: Path) -> None:
        obstore.put(store, path.name, path, chunk_size=16 << 20)

    return {"boto3 put_object": put_object, "s3transfer": upload_file, "obstore": put}


def run_all(work: Callable[[Any], object], things: list[Any], *, at_once: int) -> float:
    """Do the work for all `things`, `at_once` of them concurrently; return the seconds."""
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        for _ in pool.map(work, things):
            pass
    return time.perf_counter() - started
