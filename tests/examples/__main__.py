"""Runs the notebook in Jupyter and the DAG in Airflow on the demo's data: `make examples`.

Runs both unchanged from docs/examples. Their output is in build/examples. The exit code is 0 if
both succeed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).resolve().parents[2]
_EXAMPLES = _CHECKOUT / "docs" / "examples"
_BUILD = _CHECKOUT / "build"
_JUPYTER = _BUILD / "jupyter"
_AIRFLOW = str(_BUILD / "airflow" / "bin" / "airflow")
_EXECUTE = "from nbclient.cli import main; main()"
_DEADLINE_S = 300.0


def main() -> int:
    """Start the demo, run both while it runs, stop it."""
    results = _BUILD / "examples"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    demo = ServiceProcess(
        [sys.executable, "-m", "demo", "--keep", "--megabytes", "30", "--directory", str(results)],
        log_path=results / "demo.log",
        directory=_CHECKOUT,
    )
    try:
        wait_until(lambda: "demo: ok" in demo.log_path.read_text(), _DEADLINE_S, demo.log_tail)
        found = re.search(r"--config (\S+)", demo.log_path.read_text())
        assert found is not None
        config = str((_CHECKOUT / found[1]).resolve())
        codes = {"notebook": _notebook(config, results), "DAG": _dag(config, results)}
    finally:
        demo.interrupt(deadline_s=60.0)
    for name, code in codes.items():
        sys.stdout.write(f"examples: {name} {'ok' if code == 0 else f'failed, exit code {code}'}\n")
    return max(codes.values())


def _notebook(config: str, results: Path) -> int:
    environment = {
        **os.environ,
        "RLM_CONFIG": config,
        "PYTHONPATH": f"{_JUPYTER}{os.pathsep}{_CHECKOUT}",
        "JUPYTER_PATH": str(_JUPYTER / "share" / "jupyter"),
    }
    executed = ("--output", str(results / "quickstart.ipynb"), str(_EXAMPLES / "quickstart.ipynb"))
    command = [sys.executable, "-c", _EXECUTE, "--timeout", str(int(_DEADLINE_S)), *executed]
    return subprocess.run(command, env=environment, cwd=_EXAMPLES, check=False).returncode


def _dag(config: str, results: Path) -> int:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(results / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(_EXAMPLES),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "RLM_CONFIG": config,
        "RLM_DIRECTORY": str(results),
        "RLM_JARS": str(_BUILD / "spark-jars"),
        "RLM_TOPICS": "demo",
    }
    for command in (["db", "migrate"], ["dags", "test", "rlm_nightly"]):
        done = subprocess.run([_AIRFLOW, *command], env=environment, check=False)
        if done.returncode != 0:
            return done.returncode
    exported = list((results / "lake" / "data").rglob("*.parquet"))
    return 0 if exported else 1


if __name__ == "__main__":
    sys.exit(main())
