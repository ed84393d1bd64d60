"""Defines the settings that limit how clients use a gateway."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rlm.config.values import UNLIMITED_BYTES_PER_SECOND
from rsm.config.section import Section
from rsm.config.values import Count, IntervalMs

_Rate = Annotated[int, Field(ge=1, le=UNLIMITED_BYTES_PER_SECOND)]


class GatewayLimitsConfig(Section):
    """Quotas and limits of the gateway."""

    fetch_bytes_per_second: _Rate = Field(
        default=UNLIMITED_BYTES_PER_SECOND,
        validation_alias="remote.log.manager.fetch.max.bytes.per.second",
        description="Maximum bytes per second of stored data that all clients of a gateway "
        "together receive. While they exceed this limit, a fetch returns only local data. Lower: "
        "less load on the store, and slower reads of old data.",
    )
    fetch_quota_window_count: Count = Field(
        default=11,
        validation_alias="remote.log.manager.fetch.quota.window.num",
        description="Number of windows of `remote.log.manager.fetch.max.bytes.per.second`. After a "
        "pause, clients can receive the bytes of all windows at once. Higher: larger bursts.",
    )
    fetch_quota_window_seconds: Count = Field(
        default=1,
        validation_alias="remote.log.manager.fetch.quota.window.size.seconds",
        description="Length of one window of `remote.log.manager.fetch.max.bytes.per.second`, in "
        "seconds. Higher: larger bursts after a pause.",
    )
    reader_pending_count: Count = Field(
        default=100,
        validation_alias="remote.log.reader.max.pending.tasks",
        description="Maximum number of reads that wait for a thread of "
        "`remote.log.reader.threads`. While the queue is full, the gateway starts no further read "
        "and returns no stored data. Higher: longer waits instead of empty responses.",
    )
    fetch_max_bytes: Annotated[int, Field(ge=1024, le=2**31 - 1)] = Field(
        default=57_671_680,
        validation_alias="fetch.max.bytes",
        description="Maximum size of a fetch response. If the first batch is larger, it is still "
        "sent, as in Kafka. Higher: fewer fetches, and more memory.",
    )
    list_offsets_timeout_ms: IntervalMs = Field(
        default=8_000,
        validation_alias="remote.list.offsets.request.timeout.ms",
        description="How long a ListOffsets, OffsetForLeaderEpoch or DeleteRecords request waits "
        "for the metadata topic and the store, at most its own timeout. Partitions that have no "
        "result then get REQUEST_TIMED_OUT, and clients retry. Keep this value below the request "
        "timeout of clients, which is 30 s for most and 10 s for some. If a client times out "
        "first, it starts over and loses the results of all partitions.",
    )
    connections_of_address: Count = Field(
        default=2**31 - 1,
        validation_alias="max.connections.per.ip",
        description="Maximum number of client connections from one IP address. The gateway closes "
        "a further connection at once. Lower: one host can use fewer of `gateway.max.connections`.",
    )
    connections_max_idle_ms: IntervalMs = Field(
        default=660_000,
        validation_alias="connections.max.idle.ms",
        description="Idle time after which the gateway closes a connection. The default is one "
        "minute longer than the broker's, so that the broker closes idle connections first. Lower: "
        "connections of idle clients are freed earlier.",
    )
    connect_timeout_ms: IntervalMs = Field(
        default=10_000,
        validation_alias="socket.connection.setup.timeout.ms",
        description="How long the gateway tries to connect to the broker for a new client, and how "
        "long a client's TLS handshake may take. After either time, the gateway closes the "
        "client's connection. Lower: clients notice an unreachable broker earlier.",
    )
    progress_timeout_ms: IntervalMs = Field(
        default=60_000,
        validation_alias="gateway.client.progress.timeout.ms",
        description="How long a client may take to send its first request after it connected, or "
        "the rest of a request. The limit also applies to a client that does not receive a "
        "buffered response; while other clients wait for memory, its limit is 5 s. After this "
        "time, the gateway closes the connection. The time that the broker needs does not count. "
        "Lower: stuck clients release memory earlier.",
    )
    pipelined_request_count: Count = Field(
        default=1_000,
        validation_alias="gateway.pipelined.requests.max",
        description="Maximum number of requests of one connection that wait for a response. At the "
        "maximum, the gateway reads no further request until it has sent a response. Higher: more "
        "memory.",
    )
    gathered_request_bytes: Count = Field(
        default=1_048_576,
        validation_alias="gateway.gathered.request.max.bytes",
        description="Maximum size of a request that the gateway buffers as a whole and decodes, "
        "such as a Fetch. Produce requests are not decoded. The gateway closes the connection of a "
        "larger request. It decodes one request at a time, in about 0.2 s for each MiB. The "
        "default is enough for a Fetch of 30000 partitions. Higher: more memory.",
    )
    gathered_answer_bytes: Count = Field(
        default=104_857_600,
        validation_alias="gateway.gathered.answer.max.bytes",
        description="Maximum size of a broker's response that the gateway buffers as a whole and "
        "changes. The gateway closes the connection of a larger response. Higher: more memory.",
    )
    log_ends_age_ms: IntervalMs = Field(
        default=1_000,
        validation_alias="gateway.log.ends.max.age.ms",
        description="Maximum age of the high watermark and the last stable offset in a response "
        "that contains only stored records. Lower: more requests to the broker.",
    )
    authorization_age_ms: Annotated[int, Field(ge=-1, le=1_000)] = Field(
        default=-1,
        validation_alias="gateway.fetch.authorization.max.age.ms",
        description="How long the gateway reuses a broker's OFFSET_OUT_OF_RANGE response as "
        "proof of the client's right to read the partition. The gateway reuses it for further "
        "fetches of the same client and partition. 0: the gateway asks the broker for each fetch. "
        "-1: 0 for clients with SASL, 100 ms for others. Higher: fewer requests to the broker, and "
        "a revoked right takes effect later.",
    )
