"""The dashboard of the metadata topic and the caches that processes keep of it."""

from __future__ import annotations

from deploy.grafana.dashboard import Dashboard, Row, increase, largest, lines, number, rate

_OF_PROCESS = "{{instance}} {{process}}"

METADATA = Dashboard(
    uid="rlm-metadata",
    title="rlm: metadata",
    meaning="How processes follow the metadata topic, and their caches of it.",
    rows=(
        Row(
            title="Readiness",
            panels=(
                number(
                    "Processes with current metadata",
                    "In normal operation, these are all managers and gateways.",
                    ("count(rlm_metadata_ready == 1)", ""),
                    if_empty="0",
                ),
                lines(
                    "Not ready",
                    "1 while the metadata of a process is not ready, with the reason.",
                    ("rlm_metadata_not_ready", f"{_OF_PROCESS} {{{{reason}}}}"),
                ),
                lines(
                    "Records not applied yet",
                    "A lag that does not return to 0 means that a process cannot follow.",
                    ("rlm_metadata_lag_events", _OF_PROCESS),
                ),
                lines(
                    "Partitions that catch up",
                    "Followed metadata partitions that do not answer queries yet.",
                    ("rlm_metadata_partitions_catching_up", _OF_PROCESS),
                ),
            ),
        ),
        Row(
            title="Events",
            panels=(
                lines(
                    "Accepted events",
                    "Per second, by process.",
                    (
                        rate("rlm_metadata_events_applied_total", by="instance, process"),
                        _OF_PROCESS,
                    ),
                ),
                lines(
                    "Refused events",
                    "Per second. Some refusals are normal while leaders move.",
                    (rate("rlm_metadata_events_refused_total", by="reason"), "{{reason}}"),
                ),
                lines(
                    "Skipped records",
                    "Per second, by reason.",
                    (rate("rlm_metadata_events_skipped_total", by="reason"), "{{reason}}"),
                ),
                lines(
                    "Failures and rebuilds",
                    "In an hour: failed reads of the topic or writes of the cache, and rebuilds.",
                    (increase("rlm_metadata_failures_total", "1h"), "failures"),
                    (increase("rlm_metadata_rebuilds_total", "1h"), "rebuilds"),
                ),
                lines(
                    "Records of a newer version",
                    "The process decides nothing about the partitions and topics of these "
                    "records: upgrade it.",
                    ("rlm_metadata_newer_records", _OF_PROCESS),
                ),
                lines(
                    "Next offset to apply",
                    "By metadata partition, of the process that is furthest ahead.",
                    (
                        largest("rlm_metadata_position", by="metadata_partition"),
                        "{{metadata_partition}}",
                    ),
                ),
            ),
        ),
        Row(
            title="Caches",
            panels=(
                lines(
                    "Segments",
                    "Estimated number of segments in the cache, in any state.",
                    ("rlm_metadata_cache_segments", _OF_PROCESS),
                ),
                lines(
                    "Rows",
                    "Estimated number of rows in the cache, including indexes.",
                    ("rlm_metadata_cache_rows", _OF_PROCESS),
                ),
                lines(
                    "Disk",
                    "Bytes of the cache on disk.",
                    ("rlm_metadata_cache_disk_bytes", _OF_PROCESS),
                    unit="bytes",
                ),
                lines(
                    "Memory",
                    "Bytes of memory with blocks of the cache, and with changes not written yet.",
                    ("rlm_metadata_cache_block_cache_bytes", f"{_OF_PROCESS} blocks"),
                    ("rlm_metadata_cache_write_buffer_bytes", f"{_OF_PROCESS} changes"),
                    unit="bytes",
                ),
            ),
        ),
    ),
)
