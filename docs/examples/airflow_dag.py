"""Finishes failed deletions, audits the store and exports topics, every night.

Needs Airflow 3. The workers need `rlm-repair`, `rlm-audit` and `rlm-export` on their PATH, the jars
of Spark's Kafka connector, and these variables:

RLM_CONFIG     the file of `rlm run`
RLM_JARS       the directory of the jars
RLM_DIRECTORY  the directory of the export, the audit's findings and the repair's checkpoint
RLM_TOPICS     the topics to export, comma-separated

A task returns the counts of the job's summary. The exit code decides whether the task succeeds. If
there was nothing to do, Airflow skips the task. After exit code 2 (such as
wrong settings), data loss or failed work, the task fails without a retry, because a person must
look. Airflow retries all other failures.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

TOPICS = os.environ.get("RLM_TOPICS", "orders")
WRONG, UNDECIDED, DATA_LOSS, FAILED_WORK, NOTHING_TO_DO = 2, 3, 4, 5, 6


@task(retries=2, retry_delay=timedelta(minutes=10))
def run(program: str, *arguments: str) -> dict[str, int]:
    """Run a job and return its counts."""
    with tempfile.TemporaryDirectory() as directory:
        summary = Path(directory) / "summary.json"
        options = ["--config", os.environ["RLM_CONFIG"], "--summary", str(summary)]
        options += ["--fail-on", "data-loss,failed-work,nothing-to-do"]
        done = subprocess.run([program, *options, *arguments], check=False)
        ended = json.loads(summary.read_text()) if summary.exists() else {}
    if done.returncode == NOTHING_TO_DO:
        raise AirflowSkipException(f"{program}: there was nothing to do")
    if done.returncode in (WRONG, DATA_LOSS, FAILED_WORK):
        raise AirflowFailException(f"{program}: {ended}")
    if done.returncode != 0:
        raise RuntimeError(f"{program}: exit code {done.returncode}, {ended}")
    return ended["counts"]


@dag(
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
)
def rlm_nightly() -> None:
    """Run three independent jobs; the others run even if one fails."""
    directory = os.environ.get("RLM_DIRECTORY", "")
    jars = os.environ.get("RLM_JARS", "spark-jars")
    checkpoint = f"{directory}/repair-checkpoint"
    repair = ("rlm-repair", "--yes", "--jars", jars, "--checkpoint", checkpoint)
    run.override(task_id="repair")(*repair)
    run.override(task_id="audit")("rlm-audit", "--output", f"{directory}/audit")
    run.override(task_id="export")("rlm-export", TOPICS, f"{directory}/lake")


rlm_nightly()
