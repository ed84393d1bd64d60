"""Defines the dashboard of gateways: their clients, reads of the store, and caches."""

from __future__ import annotations

from deploy.grafana.dashboard import Dashboard, Row, increase, lines, number, quantile, rate, total

_OF_PROCESS = "{{instance}} {{process}}"
_DELAY = "kafka_server_remote_fetch_throttle_time_ms"

GATEWAY = Dashboard(
    uid="rlm-gateway",
    title="rlm: gateways",
    meaning="Clients of the gateways, their reads of the store, and the caches.",
    rows=(
        Row(
            title="Clients",
            panels=(
                lines(
                    "Connections",
                    "Open connections of clients.",
                    (total("rlm_gateway_connections", by="instance"), "{{instance}}"),
                ),
                lines(
                    "New connections",
                    "Accepted connections per second; with TLS, after the handshake.",
                    (rate("rlm_gateway_connections_accepted_total", by="instance"), "{{instance}}"),
                ),
                lines(
                    "Closed connections",
                    "Closed connections per second, by disconnect cause.",
                    (rate("rlm_gateway_connections_closed_total", by="reason"), "{{reason}}"),
                ),
                lines(
                    "Stored data by client",
                    "Bytes of stored data sent per second, by client id.",
                    (
                        rate("rlm_gateway_client_remote_bytes_total", by="client_id"),
                        "{{client_id}}",
                    ),
                    unit="Bps",
                ),
                number(
                    "Brokers without an endpoint",
                    "Live brokers for which a gateway of the whole cluster has no endpoint.",
                    ("max(rlm_gateway_unserved_brokers)", ""),
                ),
                number(
                    "ACLs that name a host",
                    "Brokers compare these hosts with the gateway's host, not with the client's.",
                    ("max(rlm_gateway_host_acls)", ""),
                ),
                number(
                    "Failed changes of certificates",
                    "Failures in a day. After each, the gateway keeps the previous certificate.",
                    (increase('rlm_gateway_tls_renewals_total{result="failed"}', "1d"), ""),
                    if_empty="0",
                ),
            ),
        ),
        Row(
            title="Reads of the store",
            panels=(
                lines(
                    "Time to the first batch: p99",
                    "From the start of a read until batches are ready, by source of the first one.",
                    (quantile(0.99, "rlm_gateway_first_batch_seconds", by="source"), "{{source}}"),
                    unit="s",
                ),
                lines(
                    "Time to the first batch: median",
                    "From the start of a read until batches are ready, by source of the first one.",
                    (quantile(0.5, "rlm_gateway_first_batch_seconds", by="source"), "{{source}}"),
                    unit="s",
                ),
                lines(
                    "Partitions of fetches that needed stored data",
                    "Partitions per second, by outcome.",
                    (rate("rlm_gateway_remote_partitions_total", by="outcome"), "{{outcome}}"),
                ),
                lines(
                    "Queue of reads",
                    "Reads that run or wait for a thread, and their maximum.",
                    ("kafka_log_remote_reader_task_queue_size", _OF_PROCESS),
                    ("kafka_log_remote_reader_task_queue_limit", f"{_OF_PROCESS} maximum"),
                ),
                lines(
                    "Fetches that wait for a permit",
                    "Fetches that wait for the quota or for a slot in the queue of reads.",
                    ("rlm_gateway_fetches_awaiting_permit", _OF_PROCESS),
                ),
                lines(
                    "Delay caused by the quota",
                    "Average delay of the fetches that the remote-read quota delayed.",
                    (f"{rate(f'{_DELAY}_sum')} / {rate(f'{_DELAY}_count')}", ""),
                    unit="ms",
                    if_empty="0",
                ),
            ),
        ),
        Row(
            title="Caches",
            panels=(
                lines(
                    "Memory of chunks",
                    "Bytes of chunks cached, being read or being sent, and their maximum.",
                    (total("rlm_chunk_cache_bytes", by="instance"), "{{instance}}"),
                    (
                        total("rlm_chunk_cache_budget_bytes", by="instance"),
                        "{{instance}} maximum",
                    ),
                    unit="bytes",
                ),
                lines(
                    "Lookups of chunks",
                    "Per second: in memory (hit), already being read (joined), or neither (miss).",
                    (rate("rlm_chunk_cache_requests_total", by="result"), "{{result}}"),
                ),
                lines(
                    "Lookups in the disk cache",
                    "Lookups per second, by result.",
                    (rate("rlm_chunk_disk_cache_results_total", by="result"), "{{result}}"),
                ),
                lines(
                    "Prefetched and evicted chunks",
                    "Chunks per second.",
                    (rate("rlm_chunk_cache_read_ahead_total"), "prefetched"),
                    (rate("rlm_chunk_cache_evictions_total"), "evicted"),
                ),
                lines(
                    "Readers, and reads of chunks",
                    "Readers of the memory, chunks being read, and reads that wait for memory.",
                    (total("rlm_chunk_cache_readers"), "readers"),
                    (total("rlm_chunk_cache_reads_in_flight"), "being read"),
                    (total("rlm_chunk_cache_waiting"), "wait for memory"),
                ),
                lines(
                    "Objects dropped from caches",
                    "Objects per second, dropped because no client can read their segment.",
                    (rate("rlm_gateway_cache_objects_dropped_total", by="reason"), "{{reason}}"),
                ),
            ),
        ),
    ),
)
