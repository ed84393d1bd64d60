"""`rlm-audit` for `spark-submit`: compare the store with the metadata."""

from __future__ import annotations

from spark_tools.audit.command import main

if __name__ == "__main__":
    main()
