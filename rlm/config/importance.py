"""Rates the importance of every key, as Kafka's configuration reference does.

high: most installations set the key, or a wrong value can lose data
medium: operators tune the key to their load, hosts or network
low: all other keys
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from rlm.config.sections import CLIENT_KEYS
from rlm.config.tls import (
    CLIENT_AUTH_KEY,
    KEY_PASSWORD_KEY,
    KEYSTORE_KEY,
    NAME_TEMPLATE_KEY,
    PROTOCOL_KEY,
    REST_KEY_PASSWORD_KEY,
    REST_KEYSTORE_KEY,
    REST_TRUSTSTORE_KEY,
    TRUSTSTORE_KEY,
    UPSTREAM_KEY_PASSWORD_KEY,
    UPSTREAM_KEYSTORE_KEY,
)
from rsm.config.metadata_manager import METADATA_PLUGIN_KEYS
from rsm.config.storage import PLUGIN_KEYS


class Importance(Enum):
    """Represents how much attention an operator should pay to a key."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


_HIGH = (
    CLIENT_KEYS,
    "bootstrap.servers",
    "log.dirs",
    "state.dir",
    "rsm.config.storage.backend",
    "rsm.config.storage.filesystem.root",
    "rsm.config.storage.s3.bucket.name",
    "rsm.config.storage.s3.endpoint.url",
    "rsm.config.storage.s3.region",
    "rsm.config.storage.azure.container.name",
    "rsm.config.storage.azure.connection.string",
    "rsm.config.storage.gcs.bucket.name",
    "rsm.config.storage.hdfs.namenode.urls",
    "rsm.config.storage.hdfs.root",
    "rsm.config.key.prefix",
    "rlmm.config.remote.log.metadata.topic.name",
    "rlmm.config.remote.log.metadata.topic.replication.factor",
    "remote.local.trim.min.age.ms",
    "remote.retention.reassert",
    "remote.outage.policy",
    "remote.outage.disk.threshold.percent",
    "log.retention.ms",
    "log.retention.bytes",
    "log.local.retention.ms",
    "log.local.retention.bytes",
    "remote.unclean.election.hold",
    "remote.unreferenced.grace.ms",
    "remote.local.trim.accept.hidden.share.groups",
    "remote.topic.deletion.grace.ms",
    "remote.store.presence.check",
    "gateway.listener",
    "gateway.advertised.listener",
    "gateway.direct.if.unserved",
    PROTOCOL_KEY,
    KEYSTORE_KEY,
    UPSTREAM_KEYSTORE_KEY,
    "rest.listener",
)

_MEDIUM = (
    PLUGIN_KEYS,
    METADATA_PLUGIN_KEYS,
    "rsm.config.storage.filesystem.file.mode",
    "rsm.config.storage.s3.path.style.access.enabled",
    "rsm.config.storage.s3.storage.class",
    "rsm.config.storage.s3.server.side.encryption",
    "rsm.config.storage.s3.kms.key.id",
    "rsm.config.storage.s3.multipart.upload.part.size",
    "rsm.config.storage.s3.upload.memory.bytes",
    "rsm.config.storage.s3.api.call.attempt.timeout",
    "rsm.config.storage.azure.upload.memory.bytes",
    "rsm.config.storage.azure.timeout.ms",
    "rsm.config.storage.gcs.endpoint.url",
    "rsm.config.storage.gcs.credentials.path",
    "rsm.config.storage.gcs.timeout.ms",
    "rsm.config.storage.hdfs.user",
    "rsm.config.storage.hdfs.timeout.ms",
    "remote.log.storage.manager.class.name",
    "rsm.config.layout",
    "remote.copy.verify",
    "remote.log.index.file.cache.total.size.bytes",
    "rsm.config.storage.read.only",
    "rsm.config.storage.throttle.bytes.per.second",
    "remote.log.metadata.manager.class.name",
    "rlmm.config.remote.log.metadata.topic.num.partitions",
    "rlmm.config.rocksdb.block.cache.size",
    "rlmm.config.rocksdb.write.buffer.size",
    "remote.log.manager.task.interval.ms",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.copy.attempt.timeout.ms",
    "remote.delete.max.attempts",
    "remote.local.trim.margin.bytes",
    "remote.orphan.grace.ms",
    "remote.log.manager.copy.max.bytes.per.second",
    "remote.log.idle.copy.ms",
    "remote.outage.shed.interval.ms",
    "offload.mode",
    "max.size.per.offload.segment.bytes",
    "max.offload.segment.rollover.time.ms",
    "offload.stream.buffer.bytes",
    "offload.stream.merge.enabled",
    "offload.stream.merge.max.bytes.per.second",
    "log.remote.copy.lag.ms",
    "log.remote.copy.lag.bytes",
    "remote.expiry.max.percent.per.cycle",
    "remote.local.trim.deletion.lag.ms",
    "remote.scrub.interval.ms",
    "remote.scrub.read.percent.per.day",
    "remote.scrub.read.max.bytes.per.second",
    "rsm.config.chunk.size",
    "rsm.config.fetch.chunk.cache.size",
    "rsm.config.fetch.chunk.cache.path",
    "rsm.config.fetch.chunk.cache.disk.size",
    "gateway.workers",
    "gateway.node.listeners",
    "gateway.node.addresses",
    "gateway.max.connections",
    "remote.fetch.max.wait.ms",
    "remote.log.reader.threads",
    "remote.log.manager.fetch.max.bytes.per.second",
    "remote.log.reader.max.pending.tasks",
    "fetch.max.bytes",
    "max.connections.per.ip",
    "connections.max.idle.ms",
    KEY_PASSWORD_KEY,
    TRUSTSTORE_KEY,
    CLIENT_AUTH_KEY,
    NAME_TEMPLATE_KEY,
    UPSTREAM_KEY_PASSWORD_KEY,
    "rest.advertised.listener",
    "metrics.listener",
    "logging.level",
    REST_KEYSTORE_KEY,
    REST_KEY_PASSWORD_KEY,
    REST_TRUSTSTORE_KEY,
)

_LOW = (
    "rsm.config.storage.s3.max.attempts",
    "rsm.config.storage.azure.upload.block.size",
    "rsm.config.storage.gcs.credentials.default",
    "rsm.config.storage.gcs.resumable.upload.chunk.size",
    "rsm.config.storage.gcs.retry.timeout.ms",
    "rsm.config.plugin.timeout.ms",
    "rsm.config.block.size",
    "rsm.config.chunked.object.max.bytes",
    "rsm.config.storage.request.warning.ms",
    "rsm.config.storage.throttle.requests.per.second",
    "rsm.config.storage.slow.delay.ms",
    "rsm.config.storage.faulty.fail.share",
    "rsm.config.storage.faulty.flip.share",
    "rsm.config.storage.faulty.seed",
    "rsm.config.storage.faulty.while.file",
    "rlmm.config.remote.log.metadata.consume.wait.ms",
    "rlmm.config.remote.log.metadata.producer.request.timeout.ms",
    "rlmm.config.remote.log.metadata.producer.delivery.timeout.ms",
    "remote.delete.dead.letter.topic",
    "remote.trim.plan.max.age.ms",
    "remote.log.metadata.custom.metadata.max.bytes",
    "remote.copy.concurrency.adaptive",
    "log.remote.copy.lag.since",
    "remote.delete.max.retrying.segments",
    "remote.scrub.max.segments.per.second",
    "gateway.heartbeat.interval.ms",
    "socket.request.max.bytes",
    "remote.log.manager.fetch.quota.window.num",
    "remote.log.manager.fetch.quota.window.size.seconds",
    "remote.list.offsets.request.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "gateway.client.progress.timeout.ms",
    "gateway.pipelined.requests.max",
    "gateway.gathered.request.max.bytes",
    "gateway.gathered.answer.max.bytes",
    "gateway.log.ends.max.age.ms",
    "gateway.fetch.authorization.max.age.ms",
    "gateway.ssl.keystore.type",
    "gateway.ssl.truststore.type",
    "gateway.ssl.enabled.protocols",
    "process.heartbeat.interval.ms",
    "process.restart.backoff.ms",
    "process.restart.backoff.max.ms",
)

IMPORTANCES: Mapping[str, Importance] = MappingProxyType(
    {
        **dict.fromkeys(_HIGH, Importance.HIGH),
        **dict.fromkeys(_MEDIUM, Importance.MEDIUM),
        **dict.fromkeys(_LOW, Importance.LOW),
    }
)
"""The importance of each key of the configuration file."""
