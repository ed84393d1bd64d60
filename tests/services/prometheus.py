"""A real Prometheus on this machine, and its promtool. `make services` installs both.

On Debian they are Debian's packages, elsewhere they have the compose stack's version.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.services.server_process import ServerProcess
from tests.services.service import BUILD, Needs, installed

_PROGRAM = BUILD / "prometheus" / "prometheus"
_PROMTOOL = BUILD / "prometheus" / "promtool"
NEEDS = Needs(installed=(_PROGRAM, _PROMTOOL))


class PrometheusServer(ServerProcess):
    """Reads /metrics of its targets each second, within its `with` block. Not thread-safe."""

    name = "prometheus"

    def __init__(self, directory: Path, *, targets: Sequence[str]) -> None:
        """`targets` are host:port."""
        super().__init__(directory)
        self._configuration = self._directory / "prometheus.yml"
        self._configuration.write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            f"  - {{job_name: rlm, static_configs: [{{targets: {json.dumps(targets)}}}]}}\n"
        )

    def ask(self, expression: str) -> list[dict[str, str]]:
        """Return the labels of each series that answers now. Raises httpx.HTTPStatusError."""
        found: dict[str, Any] = self._get("query", {"query": expression})
        return [each["metric"] for each in found["result"]]

    def label_values(self, label: str, *, metric: str) -> list[str]:
        """Return a label's values in a metric, as Grafana asks. Raises httpx.HTTPStatusError."""
        values: list[str] = self._get(f"label/{label}/values", {"match[]": metric})
        return values

    def _get(self, path: str, params: Mapping[str, str]) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=params, timeout=30.0)
        answer.raise_for_status()
        return answer.json()["data"]

    def _command(self) -> Sequence[str]:
        return [
            installed(_PROGRAM),
            f"--config.file={self._configuration}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]


def promtool(*arguments: str, directory: Path) -> str:
    """Run promtool in a directory; return its complaints, empty if it succeeds."""
    command = [installed(_PROMTOOL), *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
