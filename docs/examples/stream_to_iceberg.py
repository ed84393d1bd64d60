"""Append what is stored of a topic to an Iceberg table, each record once.

    spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0 \
        --conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog \
        --conf spark.sql.catalog.lake.type=hadoop \
        --conf spark.sql.catalog.lake.warehouse=s3a://lake/tables \
        docs/examples/stream_to_iceberg.py rlm.properties orders lake.kafka.orders s3a://lake/progress

Spark repeats a micro-batch, under the same number, if it was stopped before it noted the end of it.
A batch's query and number are in the summary of the snapshot that it made, so that one which is
there is not written again. Don't expire the newest of these snapshots while the query is stopped.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from spark_tools.data_source import register

BATCH = "rlm.batch"


def copy(spark: SparkSession, config: str, topic: str, table: str, checkpoint: str) -> None:
    """Append what came to be stored since the last call with this checkpoint. Then return.

    `config` is the file of `rlm run`, `table` a name in a catalog, `checkpoint` a directory. Two
    queries that write into one table at once need checkpoints of their own.
    """

    def append(batch: DataFrame, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        label = f"{query}:{number}"
        snapshots = batch.sparkSession.table(f"{table}.snapshots")
        if snapshots.where(col("summary")[BATCH] == label).isEmpty():
            batch.writeTo(table).option(f"snapshot-property.{BATCH}", label).append()

    register(spark)
    records = (
        spark.readStream.format("rlm").option("config", config).option("subscribe", topic).load()
    )
    if not spark.catalog.tableExists(table):
        spark.createDataFrame([], records.schema).writeTo(table).using("iceberg").create()
    query = records.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    copy(SparkSession.builder.getOrCreate(), *sys.argv[1:])
