"""All settings: key, type, bounds, default and description. docs/config.md is made from them.

Names and defaults are Kafka's wherever Kafka has the setting. Each section is for one part of
`rlm`; rlm.config.load fills it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from rlm.config.client_properties import PREFIX, ClientProperties
from rlm.config.copying import CopyingConfig
from rlm.config.deleting import DeletingConfig
from rlm.config.gateway_limits import GatewayLimitsConfig
from rlm.config.gateway_tls import GatewayTlsConfig
from rlm.config.rest_tls import RestTlsConfig
from rlm.config.scrubbing import ScrubbingConfig
from rlm.config.values import (
    AdvertisedListener,
    BootstrapServers,
    Directories,
    HeartbeatMs,
    HostPort,
    Listener,
    NodeAddresses,
    NodeListeners,
    OptionalListener,
    TopicName,
)
from rsm.config.fetch_cache import FetchCacheKeys
from rsm.config.metadata_manager import METADATA_PLUGIN_KEYS, MetadataManagerKeys
from rsm.config.section import Section, keys_of
from rsm.config.storage import PLUGIN_KEYS, StorageConfig
from rsm.config.values import Count, Directory, DurationMs, IntervalMs, SizeBytes

CLIENT_KEYS = f"{PREFIX}<librdkafka key>"


class ClusterConfig(Section):
    """The Kafka cluster."""

    bootstrap_servers: BootstrapServers = Field(
        validation_alias="bootstrap.servers",
        description="Brokers to reach the cluster by, as host:port, comma-separated.",
    )
    client: ClientProperties = Field(
        default=ClientProperties(),
        validation_alias=CLIENT_KEYS,
        description="Passed to the Kafka client as it stands: TLS, SASL, timeouts. Refused are "
        "the keys that the product decides itself, like client.acks.",
    )

    @property
    def bootstrap_text(self) -> str:
        """The brokers in librdkafka's format."""
        return ",".join(map(str, self.bootstrap_servers))


class HostConfig(Section):
    """The broker on this host."""

    log_dirs: Directories = Field(
        default=(),
        validation_alias="log.dirs",
        description="The broker's log directories, comma-separated; only read. Node id and "
        "cluster id are taken from their meta.properties. Required, but for a `rlm gateway` that "
        "serves the whole cluster.",
    )
    state_dir: Directory = Field(
        validation_alias="state.dir",
        description="Directory of this product's own state, created if it is not there. What is "
        "in it can be rebuilt from the metadata topic.",
    )


class MetadataConfig(MetadataManagerKeys):
    """The metadata topic."""

    topic_name: TopicName = Field(
        default="__remote_log_segment_metadata",
        validation_alias="rlmm.config.remote.log.metadata.topic.name",
        description="Name of the topic; created if it is not there. Not the name that Kafka's "
        "own tiered storage uses.",
    )
    num_partitions: Count = Field(
        default=50,
        validation_alias="rlmm.config.remote.log.metadata.topic.num.partitions",
        description="Its partition count; cannot be changed once it was created.",
    )
    replication_factor: Count = Field(
        default=3,
        validation_alias="rlmm.config.remote.log.metadata.topic.replication.factor",
        description="Its replication factor, and the least that an existing topic must have.",
    )
    consume_wait_ms: IntervalMs = Field(
        default=120_000,
        validation_alias="rlmm.config.remote.log.metadata.consume.wait.ms",
        description="How long a written event is waited for to come back through the topic.",
    )
    producer_request_timeout_ms: IntervalMs = Field(
        default=5_000,
        validation_alias="rlmm.config.remote.log.metadata.producer.request.timeout.ms",
        description="How long one attempt to write an event may go without an answer, before it is "
        "made again on another connection. Lower: a leader that is cut off is left earlier. Takes "
        "the place of `client.request.timeout.ms` and `client.socket.timeout.ms` for these writes. "
        "Read at the start.",
    )
    producer_delivery_timeout_ms: IntervalMs = Field(
        default=15_000,
        validation_alias="rlmm.config.remote.log.metadata.producer.delivery.timeout.ms",
        description="How long all attempts to write an event may take. Then it is not known "
        "whether the event was written; nothing else is written to that metadata partition before "
        "it was read past it. Lower: a process that is cut off says so earlier. Not below the "
        "request timeout. Read at the start.",
    )
    block_cache_bytes: Count = Field(
        default=134_217_728,
        validation_alias="rlmm.config.rocksdb.block.cache.size",
        description="Memory of each process for blocks of its metadata cache that were read.",
    )
    write_buffer_bytes: Count = Field(
        default=67_108_864,
        validation_alias="rlmm.config.rocksdb.write.buffer.size",
        description="Memory of each process for what its metadata cache has not written to its "
        "tables yet; four times as much may stand in its write-ahead log on disk.",
    )

    @field_validator("producer_delivery_timeout_ms")
    @classmethod
    def _check_delivery_timeout(cls, value: int, info: ValidationInfo) -> int:
        request_ms = info.data.get("producer_request_timeout_ms", value)
        if value < request_ms:
            raise ValueError(f"not below the producer's request.timeout.ms={request_ms}")
        return value


class ManagerConfig(Section):
    """Copying, trimming and expiring."""

    task_interval_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="remote.log.manager.task.interval.ms",
        description="How often each led partition is looked at, and a gateway's caches.",
    )
    copier_thread_count: Count = Field(
        default=10,
        validation_alias="remote.log.manager.copier.thread.pool.size",
        description="Threads that copy segments, and the most segments copied at once.",
    )
    expiration_thread_count: Count = Field(
        default=10,
        validation_alias="remote.log.manager.expiration.thread.pool.size",
        description="Threads that delete expired segments.",
    )
    copy_attempt_timeout_ms: IntervalMs = Field(
        default=600_000,
        validation_alias="remote.copy.attempt.timeout.ms",
        description="How long one attempt to copy a segment may take; after it the attempt is "
        "given up and what it wrote is deleted.",
    )
    delete_dead_letter_topic: TopicName = Field(
        default="__remote_segments_to_be_deleted",
        validation_alias="remote.delete.dead.letter.topic",
        description="Topic that segments are reported to whose objects could not be deleted.",
    )
    delete_max_attempts: Count = Field(
        default=5,
        validation_alias="remote.delete.max.attempts",
        description="Attempts to delete a segment's objects before it becomes a dead letter.",
    )
    trim_margin_bytes: SizeBytes = Field(
        default=0,
        validation_alias="remote.local.trim.margin.bytes",
        description="Bytes of stored segments that are kept locally beyond local retention.",
    )
    trim_min_age_ms: DurationMs = Field(
        default=900_000,
        validation_alias="remote.local.trim.min.age.ms",
        description="Records younger than this stay in the local log, so that a producer's retry "
        "still meets the state that recognises it.",
    )
    trim_plan_max_age_ms: IntervalMs = Field(
        default=5_000,
        validation_alias="remote.trim.plan.max.age.ms",
        description="A decision to trim is dropped if it could not be carried out within this "
        "time: leadership may have changed since.",
    )
    retention_reassert: bool = Field(
        default=True,
        validation_alias="remote.retention.reassert",
        description="Set a tiered topic's own retention.ms and retention.bytes back to -1 as soon "
        "as somebody changed them; the broker would delete what is not stored. Off: only alarm.",
    )
    orphan_grace_ms: DurationMs = Field(
        default=86_400_000,
        validation_alias="remote.orphan.grace.ms",
        description="How long a deleted segment's record is kept after the last moment at which "
        "a late writer could still add objects. The Spark jobs `rlm-audit` and `rlm-repair` take "
        "no younger object for an orphan.",
    )


class GatewayConfig(FetchCacheKeys):
    """The gateway that clients read through."""

    listener: OptionalListener = Field(
        default=HostPort(host="127.0.0.1", port=19092),
        validation_alias="gateway.listener",
        description="Address that clients connect to; port 0 lets the system choose. Empty: "
        "`rlm run` starts no gateway. The default serves a cluster on one host only: on several, "
        "a gateway that advertises a loopback address is not ready and accepts no clients.",
    )
    advertised_listener: AdvertisedListener | None = Field(
        default=None,
        validation_alias="gateway.advertised.listener",
        description="Address that clients are given for this broker, here and by the cluster's "
        "other gateways; a different one for each broker. By default the bound one; for a "
        "wildcard, the address by which this host reaches its broker, or this host's name if that "
        "is a loopback address or clients speak TLS.",
    )
    worker_count: int = Field(
        default=1,
        ge=1,
        le=64,
        validation_alias="gateway.workers",
        description="Processes among which `rlm run` divides the gateway's clients; each takes an "
        "even share of the gateway's limits and of its memory.",
    )
    node_listeners: NodeListeners = Field(
        default={},
        validation_alias="gateway.node.listeners",
        description="Only without `log.dirs`: where a gateway of the whole cluster listens for "
        "each broker's clients, as node id=host:port, comma-separated, all that there are. By "
        "default at `gateway.listener`'s port + 1 + node id.",
    )
    node_addresses: NodeAddresses = Field(
        default={},
        validation_alias="gateway.node.addresses",
        description="Addresses that clients are given for brokers, as node id=host:port, "
        "comma-separated, instead of those that gateways register.",
    )
    direct_if_unserved: bool = Field(
        default=False,
        validation_alias="gateway.direct.if.unserved",
        description="Give clients the own address of a broker whose gateway is not alive, "
        "instead of another gateway's. They find there only what the broker still has, and may "
        "reset their offsets.",
    )
    heartbeat_interval_ms: HeartbeatMs = Field(
        default=5_000,
        validation_alias="gateway.heartbeat.interval.ms",
        description="How often a gateway registers itself in the metadata topic, every 7.5 s at "
        "least. The others take it for dead after 15 s.",
    )
    max_connections: Count = Field(
        default=5_000,
        validation_alias="gateway.max.connections",
        description="Clients at once; a further one is closed at once.",
    )
    request_max_bytes: Count = Field(
        default=104_857_600,
        validation_alias="socket.request.max.bytes",
        description="The largest request that is passed on. The broker has a setting of this "
        "name; this one should not be lower.",
    )
    fetch_max_wait_ms: IntervalMs = Field(
        default=500,
        validation_alias="remote.fetch.max.wait.ms",
        description="How long one fetch waits for the store. What comes later is kept for the "
        "client's next one.",
    )
    reader_thread_count: Count = Field(
        default=10,
        validation_alias="remote.log.reader.threads",
        description="Threads that read from the store.",
    )


class ProcessConfig(Section):
    """The processes and what they listen on."""

    rest_listener: Listener | None = Field(
        default=None,
        validation_alias="rest.listener",
        description="Address on which the manager's HTTP API listens, as host:port; port 0 lets "
        "the system choose. By default a free port of the address by which this host reaches its "
        "broker. Set it to a fixed port if a firewall is between the hosts. Of `rlm gateway`: "
        "where it serves metrics, by default a free port of 127.0.0.1. Needs a restart.",
    )
    rest_advertised_listener: AdvertisedListener | None = Field(
        default=None,
        validation_alias="rest.advertised.listener",
        description="Address that the manager registers, as host:port: commands on any host reach "
        "its HTTP API there. By default the address on which it listens; for a wildcard, the "
        "address by which this host reaches its broker. Needs a restart.",
    )
    metrics_listener: Listener | None = Field(
        default=None,
        validation_alias="metrics.listener",
        description="Address of /metrics, /healthz and /readyz of all processes together; not "
        "served unless given.",
    )
    heartbeat_interval_ms: IntervalMs = Field(
        default=5_000,
        validation_alias="process.heartbeat.interval.ms",
        description="How often a manager registers itself in the metadata topic. After three "
        "times this without a heartbeat that came back it is not ready, and others take it for "
        "gone. Lower: a host that is cut off shows earlier; higher: fewer records in the topic. "
        "Read at the start.",
    )
    restart_backoff_ms: IntervalMs = Field(
        default=500,
        validation_alias="process.restart.backoff.ms",
        description="Pause before a process that ended is started again; doubled each time until "
        "it stays up, jittered by up to a fifth.",
    )
    restart_backoff_max_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="process.restart.backoff.max.ms",
        description="The longest such pause.",
    )
    logging_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO",
        validation_alias="logging.level",
        description="The least level of what is logged to standard error.",
    )


SECTIONS: tuple[type[Section], ...] = (
    ClusterConfig,
    HostConfig,
    StorageConfig,
    MetadataConfig,
    ManagerConfig,
    CopyingConfig,
    DeletingConfig,
    ScrubbingConfig,
    GatewayConfig,
    GatewayLimitsConfig,
    GatewayTlsConfig,
    ProcessConfig,
    RestTlsConfig,
)


def known_keys() -> tuple[str, ...]:
    """Return all keys of all sections, without the settings of plug-ins."""
    keys = (key for section in SECTIONS for key in keys_of(section))
    return tuple(key for key in keys if key not in {PLUGIN_KEYS, METADATA_PLUGIN_KEYS})
