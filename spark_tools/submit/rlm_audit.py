"""Runs `rlm-audit` under `spark-submit`."""

from __future__ import annotations

from spark_tools.audit.command import main

if __name__ == "__main__":
    main()
