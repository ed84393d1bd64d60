"""A real HDFS of one name node and one data node in one JVM: Hadoop's mini cluster.

`make services` copies its jars. It serves WebHDFS, and its data is gone when it ends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.services.ports import free_ports
from tests.services.server_process import ServerProcess
from tests.services.service import Needs, installed, program

_JARS = Path(__file__).resolve().parents[2] / "build" / "hadoop" / "jars"
NEEDS = Needs(programs=("java",), installed=(_JARS,))
_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_JVM = ("-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
USER = "tests"


class HdfsCluster(ServerProcess):
    """A cluster in its `with` block, with one empty directory; `port` is the name node's."""

    name = "hdfs"
    start_deadline_s = 120.0
    root = "/store"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._port, self._rpc_port = free_ports(2)

    def _command(self) -> Sequence[str]:
        ports = ("-nnport", str(self._rpc_port), "-httpport", str(self.port))
        # Everybody may write, because tests and the name node run as different users.
        settings = ("-D", "dfs.permissions.enabled=false")
        classes = f"{installed(_JARS)}/*"
        command = [program("java"), *_JVM, "-cp", classes, _MAIN, "-format", *ports, *settings]
        return [*command, "-datanodes", "1"]

    def _is_ready(self) -> bool:
        """Return whether content can be written: the name node returns a data node for it."""
        try:
            made = self._ask("PUT", self.root, "MKDIRS")
            where = self._ask("PUT", f"{self.root}/-", "CREATE&noredirect=true")
        except (OSError, HTTPException, ValueError):
            return False
        return made.get("boolean") is True and "Location" in where

    def _ask(self, method: str, path: str, op: str) -> dict[str, object]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10.0)
        try:
            connection.request(method, f"/webhdfs/v1{path}?op={op}&user.name={USER}")
            answer: dict[str, object] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()
