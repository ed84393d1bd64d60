"""Defines the labels of rlm.metrics.metrics, with the values that each can have.

The lists repeat values that other packages define, because those packages import this module. Tests
compare the lists with those values.
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
    "the message of the operating system or of the error, for example `no space left on device`; "
    "causes after the ten most frequent are `other causes`",
)
STORE_OPERATION = one_of(
    "operation",
    *("create_with_content", "create", "append", "truncate", "concat", "exists", "info"),
    *("read_range", "delete", "delete_many", "discard_uploads", "list", "lifecycle_rules"),
    "check_access",
)
STORE_REQUEST = any_of(
    "operation", "the S3 operation, for example `put_object`; for other stores the HTTP method"
)
STORE_RESULT = any_of("result", "`ok`, or the class of the error")
PLUGIN = (
    any_of("class", "the plug-in, as `package.module:Class`"),
    any_of("method", "the called method"),
)
CHECKED_STORE = explained("task", store="always this value")
DISK_CACHE_RESULT = explained(
    "result",
    hit="the chunk was on disk",
    miss="it was not on disk",
    corrupt="a cached chunk failed its checksum",
    disk_failed="the disk refused a request",
)
DROP_REASON = explained(
    "reason",
    partition_deleted="its partition is deleted",
    segment_deleted="the deletion of its segment has started",
    below_log_start="its segment ends below the log start",
    unknown="the metadata topic has no record of its segment",
)
GAP_REASON = explained(
    "reason",
    shed="the manager gave up unstored data because a disk was full",
    external_start="something other than `rlm` moved the local log start",
    accepted_loss="an operator gave up damaged objects",
)
ANOMALY_KIND = explained(
    "kind",
    missing="the store does not have the object",
    corrupt="the object's length or content is wrong",
    loss_accepted="an operator gave up the object",
)
REMOVAL = explained(
    "removal",
    waiting="until `remote.topic.deletion.grace.ms` has passed",
    deleting="only the manager that deletes exports this value, until no segment is left",
    paused="`rlm pause` stops the deletion",
)
TASK = explained(
    "task",
    cycle="the manager's cycle",
    store="checking the store",
    removal="removing the data of deleted topics",
    anomalies="checking or reporting damaged objects",
    scrub="the scrub",
    streams="watching streamed partitions",
    originals="writing the originals to the store",
    policies="inheriting from policy levels",
    access="checking the process's addresses",
    heartbeat="writing the registration",
    facts="refreshing topics and brokers",
    caches="removing unreadable segments from caches",
    overdue_connections="closing idle or slow connections",
    stray_connections="closing stray connections",
    refused_connections="closing connections while the gateway's address is unusable",
)
DISK = any_of("disk", "a directory of `log.dirs` on the disk")
SCRUB_CHECK = explained("check", stat="length and the store's checksum", read="all bytes")
REFUSAL = explained(
    "reason",
    unsigned="the request has no signature",
    malformed="the signature cannot be read",
    body_too_large="the request is too large",
    no_secret="the manager has not read the cluster's secret yet",  # noqa: S106 - a reason
    unknown_secret="the manager does not accept the secret",  # noqa: S106 - a reason
    wrong_target="the request is for another process, or for an earlier incarnation of this one",
    wrong_signature="the signature does not match the request",
    outside_window="the time of the request is too old or in the future",
    replayed="the manager has received the request before",
    busy="too many signed requests arrived in the last few minutes",
)
TLS_SIDE = explained("side", client="connections from clients", broker="connections to brokers")
TLS_RESULT = explained(
    "result", ok="the gateway uses the new files", failed="the gateway keeps the previous files"
)
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
EXPIRY_BLOCKED = explained(
    "reason",
    paused="`rlm pause` stops deletions",
    share_per_cycle="the rest expires later",
    read_lease="a job reads the data",
    gateway_behind="a live gateway has not read the newest metadata yet",
)
