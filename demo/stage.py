"""What the demo runs: a broker, `rlm run` with its gateway beside it, a directory as the store.

Everything lies in one directory. Stops in the order of use, and leaves no process behind whatever
happens to the demo itself.
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
    """The services as they run, and the directory that holds all they write."""

    directory: Path
    cluster: KafkaCluster
    rlm: RlmRun

    def partition_directory(self, topic: str, partition: int) -> Path:
        """Where the broker keeps the log of a partition."""
        return self.cluster.broker.log_dirs[0] / f"{topic}-{partition}"


@contextmanager
def services(parent: Path, *, keep_files: bool = False) -> Iterator[DemoStage]:
    """Start everything in a new directory of `parent`; at the end stop it and clear up.

    Raises DemoFailedError if something does not come up, or has ended when the block ends.
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
