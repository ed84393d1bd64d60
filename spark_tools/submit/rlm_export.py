"""`rlm-export` for `spark-submit`: write stored segments as Parquet."""

from __future__ import annotations

from spark_tools.export.command import main

if __name__ == "__main__":
    main()
