"""Lists the data source's options about what is read, and how. Pure.

An option that Spark's Kafka source also has keeps its name and meaning.
"""

from __future__ import annotations

from spark_tools.option_values import OptionType, SourceOption

_SAME = "the same"

CONNECTION_OPTIONS = (
    SourceOption(
        name="config",
        type=OptionType.FILE,
        meaning="The file of `rlm run`. Only the driver reads it.",
        example="rlm.properties",
    ),
    SourceOption(
        name="bootstrap.servers",
        type=OptionType.LIST,
        meaning="The brokers. An option overrides the file.",
        example="broker1:9092,broker2:9092",
        in_kafka_source="`kafka.bootstrap.servers`",
    ),
    SourceOption(
        name="client.*",
        type=OptionType.TEXT,
        meaning="Settings of the Kafka client by librdkafka's names, as in the file.",
        example="client.security.protocol=SSL",
        in_kafka_source="`kafka.*`",
    ),
    SourceOption(
        name="rlmm.*",
        type=OptionType.TEXT,
        meaning="Keys of the [metadata topic](config.md), as in the file.",
        example="rlmm.config.remote.log.metadata.topic.name=__remote_log_segment_metadata",
    ),
    SourceOption(
        name="rsm.*",
        type=OptionType.TEXT,
        meaning="Keys of the [store](storage.md), as in the file.",
        example="rsm.config.key.prefix=rlm",
    ),
    SourceOption(
        name="kafka.*",
        type=OptionType.TEXT,
        meaning="Settings of the Kafka client by Java's names: servers, TLS with PEM or PKCS12, "
        "and SASL PLAIN or SCRAM. Java's settings for the pace of a consumer, such as "
        "`kafka.max.poll.records`, have no effect.",
        example="kafka.security.protocol=SSL",
        in_kafka_source=_SAME,
    ),
)
"""The options that locate the cluster and the store. `*` means the rest of a name."""

FROM_TIMESTAMP = SourceOption(
    name="fromTimestamp",
    type=OptionType.NUMBER,
    meaning="Only records with this timestamp or a later one, in ms since 1970-01-01 UTC.",
    example="1767225600000",
    in_kafka_source="none: `startingTimestamp` chooses an offset",
)
UNTIL_TIMESTAMP = SourceOption(
    name="untilTimestamp",
    type=OptionType.NUMBER,
    meaning="Only records with an earlier timestamp, in ms since 1970-01-01 UTC.",
    example="1798761600000",
    in_kafka_source="none: `endingTimestamp` chooses an offset",
)
SPLIT_BYTES = SourceOption(
    name="splitBytes",
    type=OptionType.SIZE,
    meaning="Maximum stored bytes per task. Several tasks read a larger segment, and one task "
    "reads consecutive small segments. Tasks get smaller, down to 4 MiB, if there would be fewer "
    "than two per core.",
    example="256MiB",
    default="128MiB",
    least=1,
    most=1 << 40,
)
MIN_PARTITIONS = SourceOption(
    name="minPartitions",
    type=OptionType.NUMBER,
    meaning="Approximate minimum number of tasks. The plan splits segments to reach it.",
    example="200",
    default="1",
    least=1,
    most=1 << 20,
    in_kafka_source=_SAME,
)
MAX_OFFSETS_PER_TRIGGER = SourceOption(
    name="maxOffsetsPerTrigger",
    type=OptionType.NUMBER,
    meaning="Maximum number of offsets per micro-batch. Each partition gets at least one. Requires "
    "Spark 4.2 or newer.",
    example="1000000",
    least=1,
    in_kafka_source=_SAME,
)
MAX_BYTES_PER_TRIGGER = SourceOption(
    name="maxBytesPerTrigger",
    type=OptionType.SIZE,
    meaning="Maximum stored bytes per micro-batch. Each partition gets at least one offset. "
    "Requires Spark 4.2 or newer.",
    example="10GiB",
    least=1,
)
LEASE = SourceOption(
    name="leaseMs",
    type=OptionType.DURATION,
    meaning="**Failed queries:** with 0, there is no read lease, and segments can expire during a "
    "query. How long a read lease lasts unless it is renewed; in ms if it has no unit.",
    example="30m",
    default="1h",
    most=86_400_000,
)
TIMEOUT = SourceOption(
    name="timeoutMs",
    type=OptionType.DURATION,
    meaning="How long to wait for each response from the cluster, and for progress in reading the "
    "metadata topic; in ms if it has no unit.",
    example="5m",
    default="1m",
    least=1,
    most=3_600_000,  # librdkafka's maximum, as in spark_tools.cluster_topics
)
READ_OPTIONS = (
    SourceOption(
        name="subscribe",
        type=OptionType.LIST,
        meaning="Topics, comma-separated.",
        example="orders,payments",
        in_kafka_source=_SAME,
    ),
    SourceOption(
        name="subscribePattern",
        type=OptionType.PATTERN,
        meaning="Instead of `subscribe`: a regular expression in Python's syntax that must match "
        "whole topic names. Kafka's internal topics never match.",
        example="orders-.*",
        in_kafka_source="the same, in Java's syntax",
    ),
    SourceOption(
        name="assign",
        type=OptionType.JSON,
        meaning="Instead of `subscribe`: partitions of topics.",
        example='{"orders":[0,1]}',
        in_kafka_source=_SAME,
    ),
    SourceOption(
        name="startingOffsets",
        type=OptionType.JSON,
        meaning="`earliest`, `latest`, or the first offsets of some partitions, with -2 for "
        "earliest and -1 for latest.",
        example='{"orders":{"0":17}}',
        default="earliest",
        in_kafka_source="the same; its default for streams is `latest`",
    ),
    SourceOption(
        name="endingOffsets",
        type=OptionType.JSON,
        meaning="`stored` (the end of the stored log), `latest` (the end of the broker's log), or "
        "the end offsets of some partitions, with -1 for latest. The offset itself is not read. "
        "Not for streams.",
        example='{"orders":{"0":40}}',
        default="stored",
        in_kafka_source="the same without `stored`; its default is `latest`",
    ),
    FROM_TIMESTAMP,
    UNTIL_TIMESTAMP,
    SourceOption(
        name="columns",
        type=OptionType.LIST,
        meaning="The columns to read; others are not decoded. Without this option: all columns.",
        example="key,value,offset",
    ),
    SourceOption(
        name="includeHeaders",
        type=OptionType.FLAG,
        meaning="Whether rows have the column `headers`.",
        example="false",
        default="true",
        in_kafka_source="the same; its default is `false`",
    ),
    SourceOption(
        name="isolation",
        type=OptionType.CHOICE,
        meaning="`read_committed` omits the records of open and aborted transactions.",
        example="read_committed",
        default="read_uncommitted",
        choices=("read_uncommitted", "read_committed"),
        in_kafka_source="`kafka.isolation.level`",
    ),
    SourceOption(
        name="mode",
        type=OptionType.CHOICE,
        meaning="**Missing records:** `permissive` and `dropmalformed` omit [data that cannot be "
        "read](spark.md#what-cannot-be-read); `permissive` yields a row with the reason. "
        "`failfast` fails the query.",
        example="permissive",
        default="failfast",
        choices=("failfast", "permissive", "dropmalformed"),
    ),
    SourceOption(
        name="failOnDataLoss",
        type=OptionType.FLAG,
        meaning="**Missing records:** `false` selects the `mode` `dropmalformed` if `mode` is not "
        "set.",
        example="false",
        default="true",
        in_kafka_source="the same; `false` also skips expired offsets. In a query of the source "
        "`rlm`, they are an error.",
    ),
    MIN_PARTITIONS,
    SPLIT_BYTES,
    MAX_OFFSETS_PER_TRIGGER,
    MAX_BYTES_PER_TRIGGER,
    LEASE,
    TIMEOUT,
)
