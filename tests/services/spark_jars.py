"""Jars that tests give Spark: its Kafka connector, and the table formats of the examples.

`make services` copies them. `make test-spark-oldest` uses other jars.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.services.service import BUILD, Needs, installed

CONNECTOR = Path(os.environ.get("SPARK_CONNECTOR", BUILD / "spark-jars"))
_LAKES = Path(os.environ.get("LAKE_JARS", BUILD / "lake-jars"))
NEEDS = Needs(installed=(CONNECTOR, _LAKES))


def lake_jars() -> Path:
    """Return the directory of the table formats' jars. Raises ServiceMissingError."""
    return Path(installed(_LAKES))


def connector_jars() -> list[str]:
    """Return the files of Spark's Kafka connector. Raises ServiceMissingError."""
    return sorted(str(path) for path in Path(installed(CONNECTOR)).glob("*.jar"))
