"""Defines the dashboard of the metadata topic, and of the processes' caches of it."""

from __future__ import annotations

from deploy.grafana.dashboard import Dashboard, Row, increase, largest, lines, number, rate

_OF_PROCESS = "{{instance}} {{process}}"

METADATA = Dashboard(
    uid="rlm-metadata",
    title="rlm: metadata",
    meaning="How processes follow the metadata topic and cache it.",
    rows=(
        Row(
            title="Readiness",
            panels=(
                number(
                    "Processes with current metadata",
                    "This should equal the total number of managers and gateway workers.",
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
                    "If the lag does not return to 0, the process cannot keep up with the topic.",
                    ("rlm_metadata_lag_events", _OF_PROCESS),
                ),
                lines(
                    "Partitions that are catching up",
                    "Followed metadata partitions for which the process answers no queries yet.",
                    ("rlm_metadata_partitions_catching_up", _OF_PROCESS),
                ),
            ),
        ),
        Row(
            title="Events",
            panels=(
                lines(
                    "Accepted events",
                    "Events that the fold accepted per second, by process.",
                    (
                        rate("rlm_metadata_events_applied_total", by="instance, process"),
                        _OF_PROCESS,
                    ),
                ),
                lines(
                    "Refused events",
                    "Refused events per second, by reason. Some are normal while leaders change.",
                    (rate("rlm_metadata_events_refused_total", by="reason"), "{{reason}}"),
                ),
                lines(
                    "Skipped records",
                    "Skipped records per second, by reason.",
                    (rate("rlm_metadata_events_skipped_total", by="reason"), "{{reason}}"),
                ),
                lines(
                    "Failures and rebuilds",
                    "In the last hour: failed reads of the topic, failed writes to the cache, and "
                    "rebuilds of the cache.",
                    (increase("rlm_metadata_failures_total", "1h"), "failures"),
                    (increase("rlm_metadata_rebuilds_total", "1h"), "rebuilds"),
                ),
                lines(
                    "Records of a newer version",
                    "Upgrade the process: it decides nothing about the partitions and topics of "
                    "these records.",
                    ("rlm_metadata_newer_records", _OF_PROCESS),
                ),
                lines(
                    "Next offset to apply",
                    "The highest next offset of all processes, by metadata partition.",
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
                    "Bytes of memory that the cache uses for blocks read from disk, and for "
                    "changes not written yet.",
                    ("rlm_metadata_cache_block_cache_bytes", f"{_OF_PROCESS} blocks"),
                    ("rlm_metadata_cache_write_buffer_bytes", f"{_OF_PROCESS} changes"),
                    unit="bytes",
                ),
            ),
        ),
    ),
)
