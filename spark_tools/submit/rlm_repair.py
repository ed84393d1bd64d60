"""Runs `rlm-repair` under `spark-submit`."""

from __future__ import annotations

from spark_tools.repair.command import main

if __name__ == "__main__":
    main()
