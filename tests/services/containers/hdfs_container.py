"""HDFS in a container of Apache Hadoop's image: a name node and a data node."""

from __future__ import annotations

from pathlib import Path

from tests.services.containers.engine import Engine
from tests.services.containers.images import HADOOP
from tests.services.containers.service_container import ServiceContainer
from tests.services.hdfs import HdfsCluster
from tests.services.running_server import RunningServer

# The container ends with its name node.
_START = 'hdfs namenode "$@" -format && { hdfs datanode "$@" & exec hdfs namenode "$@"; }'
_ENVIRONMENT = {
    "HADOOP_HEAPSIZE_MAX": "256m",
    "HADOOP_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_ANY_PORT = "127.0.0.1:0"
# Hadoop needs a user who has a name, and its data is in the container only.
_ROOT = "0:0"


class HdfsContainer(HdfsCluster):
    """A cluster that keeps its data in the container."""

    def __init__(self, directory: Path, *, engine: Engine) -> None:
        super().__init__(directory)
        self._engine = engine

    def _launch(self) -> RunningServer:
        settings = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{self._rpc_port}",
            "dfs.namenode.http-address": f"127.0.0.1:{self.port}",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.datanode.address": _ANY_PORT,
            "dfs.datanode.http.address": _ANY_PORT,
            "dfs.datanode.ipc.address": _ANY_PORT,
            "dfs.permissions.enabled": "false",
            "dfs.replication": "1",
        }
        options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        return ServiceContainer(
            self._engine,
            HADOOP,
            ["/bin/sh", "-c", _START, "sh", *options],
            log_path=self.log_path,
            directory=self._directory,
            environment=_ENVIRONMENT,
            user=_ROOT,
        )
