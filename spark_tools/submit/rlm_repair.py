"""Runs `rlm-repair`, also under `spark-submit`."""

from __future__ import annotations

from spark_tools.submit.job_program import run_program


def main() -> None:
    """Run the job with this process's arguments, and exit."""
    run_program("spark_tools.repair.command")


if __name__ == "__main__":
    main()
