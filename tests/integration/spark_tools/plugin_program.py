"""Prints the offsets of a topic that the data source reads, as JSON.

    plugin_program.py CONFIG TOPIC

It runs in a Spark of its own, whose processes find plug-ins by the environment's PYTHONPATH.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from spark_tools.data_source import register


def main(config: str, topic: str) -> None:
    spark = (
        SparkSession.builder.config("spark.master", "local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    register(spark)
    frame = spark.read.format("rlm").option("config", config).option("subscribe", topic).load()
    offsets = [row["offset"] for row in frame.select("offset").collect()]
    spark.stop()
    sys.stdout.write(json.dumps(sorted(offsets)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
