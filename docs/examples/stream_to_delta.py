"""Appends the stored records of a topic to a Delta table, each record once.

    spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        docs/examples/stream_to_delta.py rlm.properties orders s3a://lake/orders s3a://lake/progress

**Duplicate records:** keep the checkpoint. With a new checkpoint, Spark starts a new query, which
appends all records again.

If Spark stops before it records the end of a micro-batch, it repeats the batch under the same
number. Delta ignores a write if the table already has its application and version. The application
is the id of the streaming query, and the version is the batch's number.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

from spark_tools.data_source import register


def copy(spark: SparkSession, config: str, topic: str, table: str, checkpoint: str) -> None:
    """Append the records stored since the last call with this checkpoint, and return.

    `config` is the configuration file of `rlm run`; `table` and `checkpoint` are directories.
    """

    def append(batch: DataFrame, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        rows = batch.write.format("delta").mode("append")
        rows.option("txnAppId", query).option("txnVersion", number).save(table)

    register(spark)
    records = (
        spark.readStream.format("rlm").option("config", config).option("subscribe", topic).load()
    )
    query = records.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    copy(SparkSession.builder.getOrCreate(), *sys.argv[1:])
