"""Runs `rlm-export` under `spark-submit`."""

from __future__ import annotations

from spark_tools.export.command import main

if __name__ == "__main__":
    main()
