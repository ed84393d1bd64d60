"""Defines the dashboard of chosen topics: their copies, trims, expiry and reads."""

from __future__ import annotations

from deploy.grafana.dashboard import Dashboard, Row, increase, largest, lines, rate

_CHOSEN = '{topic=~"$topic"}'
_PARTITION = "{{topic}}-{{partition}}"
_BLOCKED = f"{_PARTITION} {{{{reason}}}}"


def _of_topics(metric: str, **by: str) -> str:
    return rate(f"{metric}{_CHOSEN}", **by)


TOPIC = Dashboard(
    uid="rlm-topic",
    title="rlm: topics",
    meaning="Copies, trims, expiry and reads of the chosen topics.",
    has_topics=True,
    rows=(
        Row(
            title="To the store",
            panels=(
                lines(
                    "Copied",
                    "Bytes per second of segments in successful copies.",
                    (_of_topics("kafka_server_remote_copy_bytes_total", by="topic"), "{{topic}}"),
                    unit="Bps",
                ),
                lines(
                    "Attempts to copy",
                    "Per second: all, those that failed, and those given up after their deadline.",
                    (_of_topics("kafka_server_remote_copy_requests_total"), "all"),
                    (_of_topics("kafka_server_remote_copy_errors_total"), "failed"),
                    (_of_topics("rlm_copies_written_off_total"), "given up"),
                ),
                lines(
                    "Not stored yet: bytes",
                    "Bytes of rolled segments that are not stored, by partition.",
                    (f"kafka_server_remote_copy_lag_bytes{_CHOSEN}", _PARTITION),
                    unit="bytes",
                ),
                lines(
                    "Not stored yet: segments",
                    "Rolled segments that are not stored, by partition.",
                    (f"kafka_server_remote_copy_lag_segments{_CHOSEN}", _PARTITION),
                ),
                lines(
                    "Copies blocked",
                    "1 while rolled segments of a partition are not copied, with the reason.",
                    (f"rlm_copy_blocked{_CHOSEN}", _BLOCKED),
                ),
                lines(
                    "Gaps",
                    "Gaps recorded in an hour: offsets that neither tier contains.",
                    (
                        increase(f"rlm_gaps_recorded_total{_CHOSEN}", "1h", by="topic, reason"),
                        "{{topic}} {{reason}}",
                    ),
                ),
            ),
        ),
        Row(
            title="In the store",
            panels=(
                lines(
                    "Stored",
                    "Size of the stored log, by partition.",
                    (
                        largest(
                            f"kafka_server_remote_log_size_bytes{_CHOSEN}", by="topic, partition"
                        ),
                        _PARTITION,
                    ),
                    unit="bytes",
                ),
                lines(
                    "Segments in the metadata",
                    "Segments in any state, by partition.",
                    (
                        largest(
                            f"kafka_server_remote_log_metadata_count{_CHOSEN}",
                            by="topic, partition",
                        ),
                        _PARTITION,
                    ),
                ),
                lines(
                    "Deletions",
                    "Per second: attempts to delete a segment, failed attempts, and dead letters.",
                    (_of_topics("kafka_server_remote_delete_requests_total"), "all"),
                    (_of_topics("kafka_server_remote_delete_errors_total"), "failed"),
                    (_of_topics("rlm_dead_letters_total"), "dead letters"),
                ),
                lines(
                    "Expiry blocked",
                    "1 while data of a partition stays past its retention, with the reason.",
                    (f"rlm_expiry_blocked{_CHOSEN}", _BLOCKED),
                ),
                lines(
                    "Damaged objects",
                    "Stored objects that are recorded as damaged or given up, by kind.",
                    (f"rlm_stored_object_anomalies{_CHOSEN}", f"{_PARTITION} {{{{kind}}}}"),
                ),
                lines(
                    "Timestamps in the future",
                    "Segments with a timestamp more than an hour in the future: they expire late.",
                    (f"rlm_future_timestamp_segments{_CHOSEN}", _PARTITION),
                ),
            ),
        ),
        Row(
            title="Local logs and reads",
            panels=(
                lines(
                    "Trimmed",
                    "Bytes per second of segments that trims removed from the local log.",
                    (_of_topics("rlm_local_trimmed_bytes_total", by="topic"), "{{topic}}"),
                    unit="Bps",
                ),
                lines(
                    "Trims blocked",
                    "1 while the local log of a partition is not trimmed, with the reason.",
                    (f"rlm_trim_blocked{_CHOSEN}", _BLOCKED),
                ),
                lines(
                    "Broker retention found",
                    "Times in an hour that the manager found a broker retention other than -1.",
                    (
                        increase(f"rlm_broker_retention_limited_total{_CHOSEN}", "1h", by="topic"),
                        "{{topic}}",
                    ),
                ),
                lines(
                    "Read from the store",
                    "Bytes per second of stored data that gateways sent.",
                    (_of_topics("kafka_server_remote_fetch_bytes_total", by="topic"), "{{topic}}"),
                    unit="Bps",
                ),
                lines(
                    "Reads of the store",
                    "Reads of a partition per second: all, and those that failed.",
                    (_of_topics("kafka_server_remote_fetch_requests_total"), "all"),
                    (_of_topics("kafka_server_remote_fetch_errors_total"), "failed"),
                ),
                lines(
                    "Reads of damaged objects",
                    "Reads in an hour that failed because an object is damaged, by partition.",
                    (
                        increase(
                            f"rlm_gateway_read_anomalies_total{_CHOSEN}",
                            "1h",
                            by="topic, partition, kind",
                        ),
                        f"{_PARTITION} {{{{kind}}}}",
                    ),
                ),
            ),
        ),
    ),
)
