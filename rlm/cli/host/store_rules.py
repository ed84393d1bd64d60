"""Rows of `rlm check` about a bucket whose own rules delete or archive objects."""

from __future__ import annotations

from contextlib import closing

from rlm.policy.request.canary import CheckResult, CheckRow
from rlm.worker.store_access import open_chunk_storage
from rsm.config.choices import Backend
from rsm.config.storage import StorageConfig
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from rsm.storage.chunk_storage import ChunkStorage

_CHECK = "lifecycle rules"
_WITHOUT_RULES = frozenset({Backend.FILESYSTEM, Backend.AZURE, Backend.HDFS})


def store_rule_rows(settings: StorageConfig | None) -> tuple[CheckRow, ...]:
    """Return the rows of the configured store; none for stores whose rules are unknown."""
    if settings is None or settings.backend in _WITHOUT_RULES:
        return ()
    try:
        with closing(open_chunk_storage(settings)) as storage:
            return rule_rows(storage, settings.backend_name, settings.key_prefix)
    except InvalidConfigError as error:
        return (_unread(settings.backend_name, error),)


def rule_rows(storage: ChunkStorage, target: str, key_prefix: str) -> tuple[CheckRow, ...]:
    """Return a failed row for each rule that takes stored objects; a passed row if none does."""
    try:
        rules = storage.expiry_rules()
    except TieredStorageError as error:
        return (_unread(target, error),)
    problems = [
        f"{each}: stored segments are lost. Remove the rule, or exclude the prefix of the keys."
        for each in rules
        if each.concerns(key_prefix)
    ]
    rows = tuple(_row(target, CheckResult.FAILED, problem) for problem in problems)
    return rows or (_row(target, CheckResult.PASSED),)


def _unread(target: str, error: TieredStorageError) -> CheckRow:
    """Return a failed row if the manager cannot use the store either, else a skipped one."""
    if isinstance(error, InvalidConfigError):
        return _row(target, CheckResult.FAILED, f"the store cannot be used: {error}")
    return _row(target, CheckResult.SKIPPED, f"the rules cannot be read: {error}")


def _row(target: str, result: CheckResult, problem: str = "") -> CheckRow:
    return CheckRow(check=_CHECK, target=target, result=result, problem=problem)
