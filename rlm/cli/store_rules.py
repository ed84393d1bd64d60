"""Rows of `rlm check` about a bucket that deletes or archives by rules of its own."""

from __future__ import annotations

from contextlib import closing

from rlm.config.storage import StorageConfig
from rlm.config.values import Backend
from rlm.outside import open_chunk_storage
from rlm.policy.canary import CheckResult, CheckRow
from rsm.segment.errors import TieredStorageError
from rsm.storage.chunk_storage import ChunkStorage

_CHECK = "lifecycle rules"
_BACKENDS_WITH_RULES = frozenset({Backend.S3, Backend.GCS})


def store_rule_rows(settings: StorageConfig | None) -> tuple[CheckRow, ...]:
    """Those of the configured store; none where a store has no rules that can be read."""
    if settings is None or settings.backend not in _BACKENDS_WITH_RULES:
        return ()
    try:
        with closing(open_chunk_storage(settings)) as storage:
            return rule_rows(storage, settings.backend.value, settings.key_prefix)
    except TieredStorageError as error:
        return (_skipped(settings.backend.value, error),)


def rule_rows(storage: ChunkStorage, target: str, key_prefix: str) -> tuple[CheckRow, ...]:
    """One failed row for each rule that takes our objects; a passed one if there is none."""
    try:
        rules = storage.expiry_rules()
    except TieredStorageError as error:
        return (_skipped(target, error),)
    problems = [
        f"{each}: stored segments are lost. Remove the rule, or exclude the prefix of the keys."
        for each in rules
        if each.concerns(key_prefix)
    ]
    failed = CheckResult.FAILED
    return tuple(
        CheckRow(check=_CHECK, target=target, result=failed, problem=problem)
        for problem in problems
    ) or (CheckRow(check=_CHECK, target=target, result=CheckResult.PASSED),)


def _skipped(target: str, error: TieredStorageError) -> CheckRow:
    problem = f"the rules cannot be read: {error}"
    return CheckRow(check=_CHECK, target=target, result=CheckResult.SKIPPED, problem=problem)
