"""The settings that limit what clients may take from a gateway."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rsm.config.section import Section
from rsm.config.values import Count, IntervalMs

_Rate = Annotated[int, Field(ge=1, le=2**63 - 1)]


class GatewayLimitsConfig(Section):
    """Quotas and limits of the gateway."""

    fetch_bytes_per_second: _Rate = Field(
        default=2**63 - 1,
        validation_alias="remote.log.manager.fetch.max.bytes.per.second",
        description="Bytes per second that clients are given of the store, all of a gateway's "
        "together. While it is exceeded, fetches get nothing of the store and all of what the "
        "broker has. The default is no limit.",
    )
    fetch_quota_window_count: Count = Field(
        default=11,
        validation_alias="remote.log.manager.fetch.quota.window.num",
        description="Over how many windows that rate is kept: so much of it can be caught up on "
        "after a pause.",
    )
    fetch_quota_window_seconds: Count = Field(
        default=1,
        validation_alias="remote.log.manager.fetch.quota.window.size.seconds",
        description="Length of one such window.",
    )
    reader_pending_count: Count = Field(
        default=100,
        validation_alias="remote.log.reader.max.pending.tasks",
        description="Reads that may wait for one of `remote.log.reader.threads`. While so many "
        "do, further ones are not begun, and answered empty.",
    )
    fetch_max_bytes: Annotated[int, Field(ge=1024, le=2**31 - 1)] = Field(
        default=57_671_680,
        validation_alias="fetch.max.bytes",
        description="The most that one fetch is given, but for a first batch that is larger.",
    )
    list_offsets_timeout_ms: IntervalMs = Field(
        default=8_000,
        validation_alias="remote.list.offsets.request.timeout.ms",
        description="How long a ListOffsets, OffsetForLeaderEpoch or DeleteRecords waits for the "
        "metadata topic and the store, unless its client gives it less time. Partitions without "
        "an answer by then get REQUEST_TIMED_OUT; clients ask again. Less than clients wait for "
        "an answer, 30 s mostly and 10 s some: else they begin again, and get no partition's.",
    )
    connections_of_address: Count = Field(
        default=2**31 - 1,
        validation_alias="max.connections.per.ip",
        description="Clients at once from one address; a further one is closed at once.",
    )
    connections_max_idle_ms: IntervalMs = Field(
        default=660_000,
        validation_alias="connections.max.idle.ms",
        description="A connection on which nothing happens for so long is closed. A minute more "
        "than brokers wait by default, so that it is they who end one.",
    )
    connect_timeout_ms: IntervalMs = Field(
        default=10_000,
        validation_alias="socket.connection.setup.timeout.ms",
        description="How long a gateway tries to reach the broker for a new client.",
    )
    progress_timeout_ms: IntervalMs = Field(
        default=60_000,
        validation_alias="gateway.client.progress.timeout.ms",
        description="A connection is closed if a request that has begun to come is not there "
        "after so long, or the first one after it was accepted; or if its client takes nothing "
        "of an answer from the store. What the broker holds up does not count.",
    )
    pipelined_request_count: Count = Field(
        default=1_000,
        validation_alias="gateway.pipelined.requests.max",
        description="Requests of one connection that may wait for their answers; no more are "
        "read until one is answered.",
    )
    gathered_request_bytes: Count = Field(
        default=1_048_576,
        validation_alias="gateway.gathered.request.max.bytes",
        description="The largest request of those that a gateway looks into (not Produce) and "
        "holds in memory for it. It looks into one at a time, for about 0.2 s a MiB; the default "
        "is enough for a Fetch of 30000 partitions.",
    )
    gathered_answer_bytes: Count = Field(
        default=104_857_600,
        validation_alias="gateway.gathered.answer.max.bytes",
        description="The same for answers of brokers that are changed.",
    )
    log_ends_age_ms: IntervalMs = Field(
        default=1_000,
        validation_alias="gateway.log.ends.max.age.ms",
        description="How old the broker's high watermark and last stable offset may be in answers "
        "that hold stored records only.",
    )
    authorization_age_ms: Annotated[int, Field(ge=-1, le=1_000)] = Field(
        default=-1,
        validation_alias="gateway.fetch.authorization.max.age.ms",
        description="For how long a broker's answer that it lacks what a client fetches, and may "
        "read, counts for that client's further fetches of the same partitions; with 0 it is asked "
        "for each. -1: 0 where clients log in (SASL), 100 elsewhere.",
    )
