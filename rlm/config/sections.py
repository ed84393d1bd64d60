"""Lists all sections of settings, and defines those that have no module of their own.

A setting that Kafka also has uses Kafka's name and, in most cases, Kafka's default. rlm.config.load
fills the sections from a file, and rlm.config.reference generates docs/config.md from them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from rlm.config.client_properties import PREFIX, ClientProperties
from rlm.config.copying import CopyingConfig
from rlm.config.deleting import DeletingConfig
from rlm.config.gateway_limits import GatewayLimitsConfig
from rlm.config.offloading import OffloadingConfig, TopicDefaultsConfig
from rlm.config.scrubbing import ScrubbingConfig
from rlm.config.tls import GatewayTlsConfig, RestTlsConfig
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
LOGGING_LEVEL_KEY = "logging.level"


class ClusterConfig(Section):
    """The Kafka cluster."""

    bootstrap_servers: BootstrapServers = Field(
        validation_alias="bootstrap.servers",
        description="Brokers through which `rlm` finds the cluster: host:port, comma-separated.",
    )
    client: ClientProperties = Field(
        default=ClientProperties(),
        validation_alias=CLIENT_KEYS,
        description="Settings of the Kafka client, such as TLS, SASL and timeouts, with `client.` "
        "before librdkafka's name. `rlm` rejects the keys that it must set itself, such as "
        "`client.acks`. For requests about the metadata topic, `client.socket.timeout.ms` is 10 s "
        "by default. Lower: a process gives up an unreachable leader earlier.",
    )

    @property
    def bootstrap_text(self) -> str:
        """Return the brokers in librdkafka's format."""
        return ",".join(map(str, self.bootstrap_servers))


class HostConfig(Section):
    """The broker on this host."""

    log_dirs: Directories = Field(
        default=(),
        validation_alias="log.dirs",
        description="The broker's log directories, comma-separated. `rlm` only reads them, and "
        "takes the node id and the cluster id from their `meta.properties`. Required, except for "
        "an `rlm gateway` that serves the whole cluster.",
    )
    state_dir: Directory = Field(
        validation_alias="state.dir",
        description="Directory of `rlm`'s own state, created if it is missing. If you delete it, "
        "`rlm` rebuilds its metadata caches from the metadata topic.",
    )


class MetadataConfig(MetadataManagerKeys):
    """The metadata topic."""

    topic_name: TopicName = Field(
        default="__remote_log_segment_metadata",
        validation_alias="rlmm.config.remote.log.metadata.topic.name",
        description="Name of the metadata topic, created if it is missing. It differs from the "
        "topic of Kafka's own tiered storage.",
    )
    num_partitions: Count = Field(
        default=50,
        validation_alias="rlmm.config.remote.log.metadata.topic.num.partitions",
        description="Partition count of the metadata topic. You cannot change it after the topic "
        "was created.",
    )
    replication_factor: Count = Field(
        default=3,
        validation_alias="rlmm.config.remote.log.metadata.topic.replication.factor",
        description="Replication factor of the metadata topic, and the minimum that an existing "
        "topic must have.",
    )
    consume_wait_ms: IntervalMs = Field(
        default=120_000,
        validation_alias="rlmm.config.remote.log.metadata.consume.wait.ms",
        description="How long a process waits to read back an event that it wrote. Lower: an "
        "operation fails earlier if the topic is slow.",
    )
    producer_request_timeout_ms: IntervalMs = Field(
        default=5_000,
        validation_alias="rlmm.config.remote.log.metadata.producer.request.timeout.ms",
        description="How long one attempt to write an event waits for a response. The next "
        "attempt uses another connection. Lower: the producer gives up an unreachable leader "
        "earlier. For these writes, this key replaces `client.request.timeout.ms` and "
        "`client.socket.timeout.ms`.",
    )
    producer_delivery_timeout_ms: IntervalMs = Field(
        default=15_000,
        validation_alias="rlmm.config.remote.log.metadata.producer.delivery.timeout.ms",
        description="How long all attempts to write an event may take together, at least the "
        "request timeout. After this time, the process cannot know whether the event was written. "
        "It then writes nothing else to that metadata partition until it has read past the event. "
        "Lower: a process reports earlier that it is cut off.",
    )
    block_cache_bytes: Count = Field(
        default=134_217_728,
        validation_alias="rlmm.config.rocksdb.block.cache.size",
        description="Maximum memory of each process for blocks that it read from its metadata "
        "cache. Lower: more reads from disk.",
    )
    write_buffer_bytes: Count = Field(
        default=67_108_864,
        validation_alias="rlmm.config.rocksdb.write.buffer.size",
        description="Maximum memory of each process for changes to its metadata cache that are not "
        "yet in the cache's tables on disk. The write-ahead log on disk can be four times as "
        "large. Higher: fewer and larger writes.",
    )

    @field_validator("producer_delivery_timeout_ms")
    @classmethod
    def _check_delivery_timeout(cls, value: int, info: ValidationInfo) -> int:
        request_ms = info.data.get("producer_request_timeout_ms", value)
        if value < request_ms:
            raise ValueError(f"at least the producer's request.timeout.ms={request_ms}")
        return value


class ManagerConfig(Section):
    """Copying, trimming and expiring."""

    task_interval_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="remote.log.manager.task.interval.ms",
        description="How often the manager examines each partition that its broker leads, and how "
        "often a gateway examines its caches. Lower: copies and trims start earlier, and the load "
        "on the broker is higher.",
    )
    copier_thread_count: Count = Field(
        default=10,
        validation_alias="remote.log.manager.copier.thread.pool.size",
        description="Number of threads that copy segments, one segment at a time each. Higher: "
        "faster copies, but more memory and disk reads.",
    )
    expiration_thread_count: Count = Field(
        default=10,
        validation_alias="remote.log.manager.expiration.thread.pool.size",
        description="Number of threads that delete expired segments. Higher: faster deletions, but "
        "more requests to the store at once.",
    )
    copy_attempt_timeout_ms: IntervalMs = Field(
        default=600_000,
        validation_alias="remote.copy.attempt.timeout.ms",
        description="How long one attempt to copy a segment may take. After this time, the manager "
        "gives up the attempt and deletes its objects. If the value is too low for a slow store, "
        "large segments are never stored. Higher: the manager gives up a hanging copy later.",
    )
    delete_dead_letter_topic: TopicName = Field(
        default="__remote_segments_to_be_deleted",
        validation_alias="remote.delete.dead.letter.topic",
        description="Topic of the dead letters: records of objects that still have to be deleted.",
    )
    delete_max_attempts: Count = Field(
        default=5,
        validation_alias="remote.delete.max.attempts",
        description="Maximum number of attempts to delete a segment's objects before the manager "
        "writes a dead letter. Higher: longer failures of the store cause no dead letters.",
    )
    trim_margin_bytes: SizeBytes = Field(
        default=0,
        validation_alias="remote.local.trim.margin.bytes",
        description="Bytes of stored segments that each partition keeps in the local log beyond "
        "local retention. Higher: more local disk, and more reads that the broker serves itself.",
    )
    trim_min_age_ms: DurationMs = Field(
        default=900_000,
        validation_alias="remote.local.trim.min.age.ms",
        description="**Duplicates:** if the value is too low, the broker may forget a producer's "
        "newest batches when it restarts. It then appends them a second time if the producer "
        "retries them. Minimum age of records that a trim or a shed removes from the local log.",
    )
    trim_plan_max_age_ms: IntervalMs = Field(
        default=5_000,
        validation_alias="remote.trim.plan.max.age.ms",
        description="Maximum age of a decision to trim when the manager sends DeleteRecords. The "
        "manager drops an older decision, because the lead may have moved since. Lower: more trims "
        "wait for the next cycle.",
    )
    retention_reassert: bool = Field(
        default=True,
        validation_alias="remote.retention.reassert",
        description="**Data loss:** with `false`, the broker can delete data that is not stored. "
        "Whether the manager sets `retention.ms` and `retention.bytes` of a tiered topic back to "
        "-1 in its next cycle if another program changes them. `false`: the manager only raises "
        "an alarm.",
    )
    orphan_grace_ms: DurationMs = Field(
        default=86_400_000,
        validation_alias="remote.orphan.grace.ms",
        description="How long the record of a deleted segment is kept after its last change, or "
        "after the deadline of its copy if that is later. The Spark jobs `rlm-audit` and "
        "`rlm-repair` never treat an object younger than this as an orphan. Lower: orphans are "
        "removed earlier.",
    )


class GatewayConfig(FetchCacheKeys):
    """The gateway that clients read through."""

    listener: OptionalListener = Field(
        default=HostPort(host="127.0.0.1", port=19092),
        validation_alias="gateway.listener",
        description="Address that clients connect to. At port 0 the system chooses a port. If the "
        "value is empty, `rlm run` starts no gateway. The default serves only a cluster on one "
        "host. In a cluster on several hosts, a gateway that advertises a loopback address is not "
        "ready and accepts no clients.",
    )
    advertised_listener: AdvertisedListener | None = Field(
        default=None,
        validation_alias="gateway.advertised.listener",
        description="Address that clients receive for this broker, from this gateway and from the "
        "cluster's other gateways. Each broker needs a different address. Without this key, "
        "clients receive the address of `gateway.listener`. If that is a wildcard, they receive "
        "the address by which this host reaches its broker. If that is a loopback address or if "
        "clients use TLS, they receive this host's name instead.",
    )
    worker_count: int = Field(
        default=1,
        ge=1,
        le=64,
        validation_alias="gateway.workers",
        description="Number of processes among which `rlm run` divides the gateway's clients. Each "
        "process has an equal share of the limits on connections, reads and caches. Higher: more "
        "throughput on several cores.",
    )
    node_listeners: NodeListeners = Field(
        default={},
        validation_alias="gateway.node.listeners",
        description="Address at which a gateway of the whole cluster listens for the clients of "
        "each broker, as node id=host:port, comma-separated. Valid only if `log.dirs` is not set. "
        "Brokers that are not listed get no endpoint. Without this key, a broker's port is the "
        "port of `gateway.listener` + 1 + node id.",
    )
    node_addresses: NodeAddresses = Field(
        default={},
        validation_alias="gateway.node.addresses",
        description="Addresses that clients receive for brokers instead of the registered ones, "
        "as node id=host:port, comma-separated.",
    )
    direct_if_unserved: bool = Field(
        default=False,
        validation_alias="gateway.direct.if.unserved",
        description="**Skipped data:** with `true`, clients may find only the broker's local log, "
        "and reset their offsets. Whether clients receive a broker's own address while its gateway "
        "is down, instead of another gateway's.",
    )
    heartbeat_interval_ms: HeartbeatMs = Field(
        default=5_000,
        validation_alias="gateway.heartbeat.interval.ms",
        description="How often a gateway writes its registration to the metadata topic. Other "
        "gateways treat it as dead after 15 s without a registration. Lower: more records in the "
        "topic, but more writes can fail before the gateway counts as dead.",
    )
    max_connections: Count = Field(
        default=5_000,
        validation_alias="gateway.max.connections",
        description="Maximum number of connected clients. The gateway closes a further connection "
        "at once. Higher: more memory.",
    )
    request_max_bytes: Count = Field(
        default=104_857_600,
        validation_alias="socket.request.max.bytes",
        description="Maximum size of a request that the gateway relays. The gateway closes the "
        "connection of a larger request. Set at least the broker's value of this key.",
    )
    fetch_max_wait_ms: IntervalMs = Field(
        default=500,
        validation_alias="remote.fetch.max.wait.ms",
        description="How long one fetch waits for the store. The gateway keeps data that arrives "
        "later for the client's next fetch. Lower: more empty responses. Higher: a slow store "
        "delays local partitions of the same fetch longer.",
    )
    reader_thread_count: Count = Field(
        default=10,
        validation_alias="remote.log.reader.threads",
        description="Number of threads that read from the store. Higher: more requests at once.",
    )


class ProcessConfig(Section):
    """The processes and what they listen on."""

    rest_listener: Listener | None = Field(
        default=None,
        validation_alias="rest.listener",
        description="Address of the manager's HTTP API, as host:port. At port 0 the system "
        "chooses a port. Without this key, the manager uses a free port of the address by which "
        "this host reaches its broker. Set a fixed port if a firewall separates the hosts. For "
        "`rlm gateway`, this address serves metrics; the default is a free port of 127.0.0.1.",
    )
    rest_advertised_listener: AdvertisedListener | None = Field(
        default=None,
        validation_alias="rest.advertised.listener",
        description="Address that the manager registers, as host:port. Commands on any host reach "
        "its HTTP API there. Without this key, the manager registers the address of "
        "`rest.listener`. If that is a wildcard, it registers the address by which this host "
        "reaches its broker. A process of `rlm gateway` registers its address in the same way, "
        "unless `rest.listener` is a loopback address.",
    )
    metrics_listener: Listener | None = Field(
        default=None,
        validation_alias="metrics.listener",
        description="Address that serves `/metrics`, `/healthz` and `/readyz` of all processes "
        "together. Without this key, nothing serves them.",
    )
    heartbeat_interval_ms: IntervalMs = Field(
        default=5_000,
        validation_alias="process.heartbeat.interval.ms",
        description="How often a manager writes its registration to the metadata topic. If it "
        "reads back no registration for three intervals, it is not ready, and other processes "
        "treat it as gone. Lower: other processes notice earlier that a host is cut off. Higher: "
        "fewer records in the topic.",
    )
    restart_backoff_ms: IntervalMs = Field(
        default=500,
        validation_alias="process.restart.backoff.ms",
        description="Pause before the supervisor restarts a process that ended. The pause doubles "
        "with each failure, up to `process.restart.backoff.max.ms`, until the process has run for "
        "a minute. Each pause is up to 20% shorter or longer.",
    )
    restart_backoff_max_ms: IntervalMs = Field(
        default=30_000,
        validation_alias="process.restart.backoff.max.ms",
        description="Maximum pause before the supervisor restarts a process. Lower: the supervisor "
        "restarts a repeatedly failing process more often.",
    )
    logging_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO",
        validation_alias=LOGGING_LEVEL_KEY,
        description="Minimum level of log messages on standard error.",
    )


SECTIONS: tuple[type[Section], ...] = (
    ClusterConfig,
    HostConfig,
    StorageConfig,
    MetadataConfig,
    ManagerConfig,
    CopyingConfig,
    OffloadingConfig,
    TopicDefaultsConfig,
    DeletingConfig,
    ScrubbingConfig,
    GatewayConfig,
    GatewayLimitsConfig,
    GatewayTlsConfig,
    ProcessConfig,
    RestTlsConfig,
)


def known_keys() -> tuple[str, ...]:
    """Return all keys of all sections, except the settings of plug-ins."""
    keys = (key for section in SECTIONS for key in keys_of(section))
    return tuple(key for key in keys if key not in {PLUGIN_KEYS, METADATA_PLUGIN_KEYS})
