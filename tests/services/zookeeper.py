"""A ZooKeeper for brokers without KRaft, from the jars of their version of Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.services.kafka_runtime import KafkaRelease, java_command, run_tool
from tests.services.server_process import ServerProcess

_SERVER = "org.apache.zookeeper.server.ZooKeeperServerMain"
_SHELL = "org.apache.zookeeper.ZooKeeperMain"
# Otherwise ZooKeeper looks for beans of log4j 1, which the bridge to log4j 2 lacks.
_FLAGS = ("-Xms64m", "-Xmx64m", "-Dzookeeper.jmx.log4j.disable=true")
_CONFIGURATION = """\
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={directory}/data
admin.enableServer=false
"""


class ZooKeeper(ServerProcess):
    """One server, whose data outlives a stop. Not thread-safe."""

    name = "zookeeper"
    start_deadline_s = 60.0

    def __init__(self, directory: Path, release: KafkaRelease) -> None:
        super().__init__(directory)
        self._release = release

    @property
    def address(self) -> str:
        """host:port, as brokers take it."""
        return f"127.0.0.1:{self.port}"

    def move_controller(self) -> None:
        """Make the brokers elect a controller, maybe the same one, as an operator does."""
        arguments = ("-server", self.address, "delete", "/controller")
        run_tool(_SHELL, *arguments, flags=_FLAGS, release=self._release)

    def _command(self) -> Sequence[str]:
        path = self._directory / "zookeeper.properties"
        path.write_text(_CONFIGURATION.format(port=self.port, directory=self._directory))
        return java_command(_SERVER, str(path), flags=_FLAGS, release=self._release)
