"""Defines the labels of rlm.metrics.metrics, with the values that each can have.

The lists repeat values that other packages define, because those packages import the metrics. Tests
compare the lists with the packages.
"""

from __future__ import annotations

from rlm.metrics.description import any_of, explained, one_of

TOPIC = any_of("topic", "a topic")
PARTITION = any_of("partition", "the partition's number")
BY_TOPIC = (TOPIC,)
BY_PARTITION = (TOPIC, PARTITION)
ERROR_CLASS = any_of("error", "the class of the error")
FAILING_CAUSE = any_of(
    "cause",
    "the message of the system or of the error, for example `no space left on device`; causes "
    "beyond the first ten are `other causes`",
)
STORE_OPERATION = one_of(
    "operation",
    *("create_with_content", "create", "append", "truncate", "concat", "exists", "info"),
    *("read_range", "delete", "delete_many", "discard_uploads", "list", "lifecycle_rules"),
    "check_access",
)
STORE_REQUEST = any_of(
    "operation", "for S3 its operation, for example `put_object`; for other stores the HTTP method"
)
STORE_RESULT = any_of("result", "`ok`, or the class of the error")
PLUGIN = (
    any_of("class", "the plug-in, as `package.module:Class`"),
    any_of("method", "the called method"),
)
CHECKED_STORE = one_of("task", "store")
DISK_CACHE_RESULT = explained(
    "result",
    hit="",
    miss="",
    corrupt="a cached chunk failed its checksum",
    disk_failed="the disk refused a request",
)
DROP_REASON = explained(
    "reason",
    partition_deleted="",
    segment_deleted="",
    below_log_start="",
    unknown="the metadata does not know the segment",
)
GAP_REASON = explained(
    "reason",
    shed="the manager gave up unstored data because a disk was full",
    external_start="something other than `rlm` moved the local log start",
    accepted_loss="an operator gave up damaged objects",
)
ANOMALY_KIND = explained(
    "kind",
    missing="",
    corrupt="",
    loss_accepted="an operator gave it up",
)
REMOVAL = explained(
    "removal",
    waiting="for `remote.topic.deletion.grace.ms`",
    deleting="exported by the one manager that deletes, until no segment is left",
    paused="by `rlm pause`",
)
TASK = one_of(
    "task",
    *("cycle", "store", "removal", "anomalies", "scrub", "streams", "originals", "policies"),
    *("access", "heartbeat", "facts", "caches"),
    *("overdue_connections", "stray_connections", "refused_connections"),
)
DISK = any_of("disk", "a directory of `log.dirs` on the disk")
SCRUB_CHECK = explained("check", stat="length and the store's checksum", read="all bytes")
REFUSAL = one_of(
    "reason",
    *("unsigned", "malformed", "body_too_large", "no_secret", "unknown_secret", "wrong_target"),
    *("wrong_signature", "outside_window", "replayed", "busy"),
)
TLS_SIDE = one_of("side", "client", "broker")
TLS_RESULT = explained("result", ok="", failed="the gateway keeps the previous certificate")
_OF_THE_LOG = ("unsupported_topic", "lineage_conflict", "older_than_epochs")
_OF_THE_OWNER = ("not_owner", "newer_record", "policy_not_active", "paused")
COPY_BLOCKED = one_of(
    "reason",
    *_OF_THE_OWNER,
    *_OF_THE_LOG,
    *("partition_deleted", "store_unreachable", "corrupt", "failing", "stopped", "not_stable_yet"),
    "copy_lag",
)
TRIM_BLOCKED = one_of(
    "reason",
    *_OF_THE_OWNER,
    *_OF_THE_LOG,
    *("log_start_not_recorded", "diverged", "gap_not_recorded", "not_stored"),
    *("above_high_watermark", "newest_rolled_segment", "within_margin", "younger_than_min_age"),
    *("within_deletion_lag", "gateway_behind", "anomalies_at_limit", "anomaly"),
    *("share_group", "share_groups_unknown", "share_groups_hidden"),
)
EXPIRY_BLOCKED = one_of("reason", "paused", "share_per_cycle", "read_lease", "gateway_behind")
