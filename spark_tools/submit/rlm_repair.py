"""`rlm-repair` for `spark-submit`: finish deletions that failed."""

from __future__ import annotations

from spark_tools.repair.command import main

if __name__ == "__main__":
    main()
