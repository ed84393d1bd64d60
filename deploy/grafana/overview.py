"""Defines the dashboard that shows whether all hosts are well, and how much data moves."""

from __future__ import annotations

from deploy.grafana.dashboard import Dashboard, Row, increase, largest, lines, number, rate, total

_OF_PROCESS = "{{instance}} {{process}}"
_STORED = "kafka_server_remote_log_size_bytes"
_DAMAGED = 'rlm_stored_object_anomalies{kind=~"missing|corrupt"}'

OVERVIEW = Dashboard(
    uid="rlm-overview",
    title="rlm: overview",
    meaning="Whether all hosts are well, and how much data moves between brokers and store.",
    rows=(
        Row(
            title="Health",
            panels=(
                number(
                    "Processes down",
                    "Managers and gateways that are not running.",
                    ("count(rlm_process_up == 0)", ""),
                    if_empty="0",
                ),
                number(
                    "Without metadata",
                    "Managers and gateways whose metadata is not ready.",
                    ("count(rlm_metadata_ready == 0)", ""),
                    if_empty="0",
                ),
                number(
                    "Hosts without the store",
                    "Hosts whose last check of the store failed.",
                    ("count(rlm_bucket_accessible == 0)", ""),
                    if_empty="0",
                ),
                number(
                    "Partitions not copied",
                    "Partitions whose rolled segments are blocked from being copied.",
                    (f"count({largest('rlm_copy_blocked', by='topic, partition')} == 1)", ""),
                    if_empty="0",
                ),
                number(
                    "Damaged objects",
                    "Stored objects that are recorded as missing or corrupt.",
                    (total(largest(_DAMAGED, by="topic, partition, kind")), ""),
                    if_empty="0",
                ),
                number(
                    "Shortest time until a disk is full",
                    "At the rate of the last cycles; infinite while no disk fills.",
                    ("min(rlm_local_disk_seconds_until_full)", ""),
                    unit="s",
                ),
            ),
        ),
        Row(
            title="Data",
            panels=(
                lines(
                    "Copied to the store",
                    "Bytes per second of segments in successful copies.",
                    (rate("kafka_server_remote_copy_bytes_total", by="instance"), "{{instance}}"),
                    unit="Bps",
                ),
                lines(
                    "Not stored yet",
                    "Bytes of rolled segments that are not stored. The size must not keep growing.",
                    (total("kafka_server_remote_copy_lag_bytes", by="topic"), "{{topic}}"),
                    unit="bytes",
                ),
                lines(
                    "Read from the store by clients",
                    "Bytes per second of stored data that gateways sent.",
                    (rate("kafka_server_remote_fetch_bytes_total", by="instance"), "{{instance}}"),
                    unit="Bps",
                ),
                lines(
                    "Trimmed from local logs",
                    "Bytes per second of segments that trims removed from brokers' disks.",
                    (rate("rlm_local_trimmed_bytes_total", by="instance"), "{{instance}}"),
                    unit="Bps",
                ),
                lines(
                    "Used share of brokers' disks",
                    "Used share of each disk of log.dirs.",
                    ("rlm_local_disk_used_ratio", "{{instance}} {{disk}}"),
                    unit="percentunit",
                ),
                lines(
                    "Stored",
                    "Bytes of finished segments in the store, by topic.",
                    (total(largest(_STORED, by="topic, partition"), by="topic"), "{{topic}}"),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            title="Errors",
            panels=(
                lines(
                    "Failed copies",
                    "Failed attempts per second to copy a segment, by topic.",
                    (rate("kafka_server_remote_copy_errors_total", by="topic"), "{{topic}}"),
                ),
                lines(
                    "Partitions whose copies fail",
                    "Partitions whose last two or more copies failed, by the error's message.",
                    (total("rlm_copy_failing_partitions", by="cause"), "{{cause}}"),
                ),
                lines(
                    "Failed reads of clients",
                    "Reads of a partition per second that ended with KAFKA_STORAGE_ERROR.",
                    (rate("kafka_server_remote_fetch_errors_total", by="topic"), "{{topic}}"),
                ),
                lines(
                    "Failed runs of background tasks",
                    "Failed runs per second, by task and error class.",
                    (rate("rlm_task_failures_total", by="task, error"), "{{task}} {{error}}"),
                ),
                lines(
                    "Gaps",
                    "Gaps recorded in an hour: offsets that neither tier contains.",
                    (
                        increase("rlm_gaps_recorded_total", "1h", by="topic, reason"),
                        "{{topic}} {{reason}}",
                    ),
                ),
                lines(
                    "Deleted topics with stored data",
                    "Deleted tiered topics whose stored data still exists, by state of deletion.",
                    (largest("rlm_deleted_topics", by="topic, removal"), "{{topic}} {{removal}}"),
                    if_empty="0",
                ),
                lines(
                    "Restarts of processes",
                    "Attempts to restart a process in an hour.",
                    ("increase(rlm_process_restarts_total[1h])", _OF_PROCESS),
                ),
                lines(
                    "Refused requests of commands",
                    "Requests per second that the managers' HTTP API refused, by reason.",
                    (rate("rlm_http_requests_refused_total", by="reason"), "{{reason}}"),
                ),
            ),
        ),
    ),
)
