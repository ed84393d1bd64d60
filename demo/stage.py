"""Starts the demo's services: a broker, `rlm run` with its gateway, and a directory as the store.

All files are in one directory. The services stop in reverse order, also if the demo fails, so that
no process is left.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.failure import DemoFailedError
from tests.services.kafka import KafkaCluster
from tests.services.rlm_run import RlmRun
from tests.services.service import ServiceError


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStage:
    """The running services, and the directory that contains all their files."""

    directory: Path
    cluster: KafkaCluster
    rlm: RlmRun

    def partition_directory(self, topic: str, partition: int) -> Path:
        """Return the directory of a partition's local log."""
        return self.cluster.broker.log_dirs[0] / f"{topic}-{partition}"

    def store_configuration(self) -> Path:
        """Write a configuration file that contains only the store's settings; return its path."""
        path = self.directory / "store.properties"
        path.write_text(
            "rsm.config.storage.backend=filesystem\n"
            f"rsm.config.storage.filesystem.root={self.rlm.store}\n"
        )
        return path


@contextmanager
def services(parent: Path, *, keep_files: bool = False) -> Iterator[DemoStage]:
    """Start the services in a new directory of `parent`; stop them at the end.

    Removes the files unless `keep_files` is set. Raises DemoFailedError if a service does not
    start, or if the block raises ServiceError.
    """
    parent.mkdir(exist_ok=True)
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="demo-", dir=parent))
        if not keep_files:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
        cluster = KafkaCluster(directory / "kafka")
        rlm = RlmRun(directory, cluster, gateway=True)
        try:
            stack.enter_context(cluster)
            stack.callback(rlm.stop)
            rlm.start()
            yield DemoStage(directory=directory, cluster=cluster, rlm=rlm)
        except ServiceError as error:
            raise DemoFailedError(str(error)) from error
