"""Appends the stored records of a topic to an Iceberg table, each record once.

    spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0 \
        --conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog \
        --conf spark.sql.catalog.lake.type=hadoop \
        --conf spark.sql.catalog.lake.warehouse=s3a://lake/tables \
        docs/examples/stream_to_iceberg.py rlm.properties orders lake.kafka.orders s3a://lake/progress

**Duplicate records:** keep the checkpoint. With a new checkpoint, Spark starts a new query, which
appends all records again. While the query is stopped, do not expire its newest snapshot.

If Spark stops before it records the end of a micro-batch, it repeats the batch under the same
number. `copy` records the query's id and the batch's number in the summary of each snapshot. It
does not write a batch again if a snapshot already names it.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from spark_tools.data_source import register

BATCH = "rlm.batch"


def copy(spark: SparkSession, config: str, topic: str, table: str, checkpoint: str) -> None:
    """Append the records stored since the last call with this checkpoint, and return.

    `config` is the configuration file of `rlm run`, `table` is a name in a catalog, and
    `checkpoint` is a directory. Queries that write to one table concurrently need different
    checkpoints.
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
