"""A real HDFS of one name node and one data node in one JVM: Hadoop's mini cluster.

`make setup` copies its jars. Speaks WebHDFS; its data is gone when it ends.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.service import Service
from tests.services.waiting import wait_until

_JARS = Path(__file__).resolve().parents[2] / "build" / "hadoop" / "jars"
_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_JVM = ("-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
USER = "tests"


class HdfsCluster(Service):
    """Runs within its `with` block, with one empty directory."""

    root = "/store"

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._rpc_port, self._http_port = free_ports(2)
        self._process: ServiceProcess | None = None

    @property
    def port(self) -> int:
        """The name node's, for WebHDFS."""
        return self._http_port

    @property
    def url(self) -> str:
        """The name node's."""
        return f"http://127.0.0.1:{self._http_port}"

    def start(self) -> None:
        ports = ("-nnport", str(self._rpc_port), "-httpport", str(self._http_port))
        # Everybody may write: who tests is not who runs the name node.
        settings = ("-D", "dfs.permissions.enabled=false")
        command = ["java", *_JVM, "-cp", f"{_JARS}/*", _MAIN, "-format", *ports, *settings]
        self._process = ServiceProcess(
            [*command, "-datanodes", "1"],
            log_path=self._directory / "hdfs.log",
            directory=self._directory,
        )
        wait_until(self._has_data_node, 120.0, self._process.log_tail, interval_s=0.2)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill(children=True)

    def _has_data_node(self) -> bool:
        """Whether content can be written: a data node is named for it."""
        try:
            made = self._ask("PUT", self.root, "MKDIRS")
            where = self._ask("PUT", f"{self.root}/-", "CREATE&noredirect=true")
        except (OSError, HTTPException, ValueError):
            return False
        return made.get("boolean") is True and "Location" in where

    def _ask(self, method: str, path: str, op: str) -> dict[str, object]:
        connection = HTTPConnection("127.0.0.1", self._http_port, timeout=10.0)
        try:
            connection.request(method, f"/webhdfs/v1{path}?op={op}&user.name={USER}")
            answer: dict[str, object] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()
