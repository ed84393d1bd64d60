"""Defines the dashboard of the store: requests, copies, merges, scrubs, and the cost."""

from __future__ import annotations

from deploy.grafana.dashboard import (
    AdjustablePrice,
    Dashboard,
    Row,
    increase,
    largest,
    lines,
    number,
    quantile,
    rate,
    total,
)

_SECONDS_PER_MONTH = 30 * 86_400
_STORED_BYTES = " + ".join(
    total(largest(name, by="topic, partition"))
    for name in ("kafka_server_remote_log_size_bytes", "rlm_remote_overlap_bytes")
)
_STORAGE_COST = f"({_STORED_BYTES}) / 2^30 * $price_per_gib_month"

# Price classes of S3: an operation that is neither a read nor free costs as much as a write.
_READS = "get_object|head_object|GET|HEAD"
_FREE = "delete_object|delete_objects|abort_multipart_upload|DELETE"
_HTTP_REQUESTS = "rlm_store_http_requests_total"


def _request_cost(operations: str, price: str) -> str:
    requests = rate(f"{_HTTP_REQUESTS}{{operation{operations}}}")
    return f"{requests} * {_SECONDS_PER_MONTH} / 1000 * ${price}"


_WRITE_COST = _request_cost(f'!~"{_READS}|{_FREE}"', "price_per_1000_writes")
_READ_COST = _request_cost(f'=~"{_READS}"', "price_per_1000_reads")

STORE = Dashboard(
    uid="rlm-store",
    title="rlm: store and cost",
    meaning="Requests to the store, copies, merges and scrubs, and the store's cost in a month.",
    prices=(
        AdjustablePrice(
            name="price_per_gib_month", label="Price of a GiB for a month", default="0.023"
        ),
        AdjustablePrice(
            name="price_per_1000_writes", label="Price of 1000 writes and lists", default="0.005"
        ),
        AdjustablePrice(name="price_per_1000_reads", label="Price of 1000 reads", default="0.0004"),
    ),
    rows=(
        Row(
            title="Cost in a month, at the current rates and the prices above",
            panels=(
                number(
                    "Stored",
                    "Bytes of finished segments of all topics.",
                    (_STORED_BYTES, ""),
                    unit="bytes",
                ),
                number(
                    "Storage",
                    "Stored GiB times their price. Objects of unfinished copies are not counted.",
                    (_STORAGE_COST, ""),
                ),
                number(
                    "Writes and lists",
                    "HTTP requests that are neither reads nor deletions, times their price.",
                    (_WRITE_COST, ""),
                    if_empty="0",
                ),
                number(
                    "Reads",
                    "GET and HEAD requests times their price. Deletions count as free.",
                    (_READ_COST, ""),
                    if_empty="0",
                ),
            ),
        ),
        Row(
            title="Requests",
            panels=(
                lines(
                    "HTTP requests",
                    "Requests per second, including retries, by S3 operation or HTTP method.",
                    (rate(_HTTP_REQUESTS, by="operation"), "{{operation}}"),
                    if_empty="0",
                ),
                lines(
                    "Operations",
                    "Operations per second. One operation may need several HTTP requests.",
                    (rate("rlm_storage_request_seconds_count", by="operation"), "{{operation}}"),
                ),
                lines(
                    "Operations that failed",
                    "Failed operations per second, by operation and error class.",
                    (
                        rate(
                            'rlm_storage_request_seconds_count{result!="ok"}',
                            by="operation, result",
                        ),
                        "{{operation}} {{result}}",
                    ),
                    if_empty="0",
                ),
                lines(
                    "Time of an operation: p99",
                    "99th percentile, by operation.",
                    (
                        quantile(0.99, "rlm_storage_request_seconds", by="operation"),
                        "{{operation}}",
                    ),
                    unit="s",
                ),
                lines(
                    "Time of an operation: median",
                    "Median, by operation.",
                    (
                        quantile(0.5, "rlm_storage_request_seconds", by="operation"),
                        "{{operation}}",
                    ),
                    unit="s",
                ),
                lines(
                    "Store reachable",
                    "1 if the last check of the store succeeded, else 0.",
                    ("min by (instance) (rlm_bucket_accessible)", "{{instance}}"),
                ),
                lines(
                    "Errors of plug-ins",
                    "Failed calls per second, by class and method.",
                    (rate("rlm_plugin_errors_total", by="class, method"), "{{class}} {{method}}"),
                ),
            ),
        ),
        Row(
            title="Copies",
            panels=(
                lines(
                    "Copies at once",
                    "Current maximum number of segments that are copied at once.",
                    ("rlm_copy_concurrency", "{{instance}}"),
                ),
                lines(
                    "Age of the oldest copy in flight",
                    "The age must stay below remote.copy.attempt.timeout.ms.",
                    ("rlm_oldest_copy_age_seconds", "{{instance}}"),
                    unit="s",
                ),
                lines(
                    "Copies that hang",
                    "Copies that the manager gave up, but whose calls have not returned. Each "
                    "occupies a thread.",
                    ("rlm_copies_hanging", "{{instance}}"),
                ),
                lines(
                    "Open segments of streams",
                    "Open segments; each uses memory for a part of an upload.",
                    ("rlm_streams_open", "{{instance}}"),
                ),
                lines(
                    "Wait for the rate limit",
                    "Milliseconds per second that copies waited, summed over all copies.",
                    (
                        rate("kafka_server_remote_copy_throttle_time_ms_total", by="instance"),
                        "{{instance}}",
                    ),
                    unit="ms",
                ),
                lines(
                    "Streamed bytes",
                    "Bytes per second of segments in successful streams, and bytes that the store "
                    "copied from earlier attempts, by topic.",
                    (rate("rlm_stream_bytes_total", by="topic"), "{{topic}}"),
                    (rate("rlm_stream_reused_bytes_total", by="topic"), "{{topic}}, not resent"),
                    unit="Bps",
                ),
                lines(
                    "Streams",
                    "Per second: attempts to stream a segment, and those that failed.",
                    (rate("rlm_stream_requests_total"), "attempts"),
                    (rate("rlm_stream_errors_total"), "failed"),
                ),
                lines(
                    "Merged bytes",
                    "Bytes per second that merges of small streamed segments wrote, by topic.",
                    (rate("rlm_stream_merge_bytes_total", by="topic"), "{{topic}}"),
                    unit="Bps",
                ),
                lines(
                    "Merges",
                    "Per second: small segments replaced, attempts, and those that failed.",
                    (rate("rlm_stream_merged_segments_total"), "replaced"),
                    (rate("rlm_stream_merge_requests_total"), "attempts"),
                    (rate("rlm_stream_merge_errors_total"), "failed"),
                ),
                lines(
                    "Wait for a merge",
                    "Small streamed segments that wait to be merged, by topic.",
                    (total("rlm_stream_merge_waiting_segments", by="topic"), "{{topic}}"),
                ),
                lines(
                    "Bytes that wait for a merge",
                    "Bytes of small streamed segments that wait to be merged, by topic.",
                    (total("rlm_stream_merge_waiting_bytes", by="topic"), "{{topic}}"),
                    unit="bytes",
                ),
            ),
        ),
        Row(
            title="Checks of stored objects",
            panels=(
                lines(
                    "Checked segments",
                    "Checked segments per second, by kind of check.",
                    (rate("rlm_scrubbed_segments_total", by="check"), "{{check}}"),
                ),
                lines(
                    "Read by the scrub",
                    "Bytes per second that the scrub read.",
                    (rate("rlm_scrubbed_bytes_total", by="instance"), "{{instance}}"),
                    unit="Bps",
                ),
                lines(
                    "Damaged or skipped",
                    "In a day: times that an object was damaged, and skipped segments.",
                    (increase("rlm_scrub_damaged_objects_total", "1d"), "damaged"),
                    (increase("rlm_scrub_skipped_segments_total", "1d"), "skipped"),
                ),
                lines(
                    "Since the last whole pass",
                    "Time since the scrub last ended a pass over all partitions that the host's "
                    "broker leads.",
                    ("time() - rlm_scrub_pass_ended_timestamp_seconds", "{{instance}}"),
                    unit="s",
                ),
            ),
        ),
    ),
)
