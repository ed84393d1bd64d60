"""The modules that decide, in groups, and the tests that each group is measured with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Source files that decide one thing, and the directories of their tests.

    `every`: each mutant is tried, not only a sample.
    """

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    every: bool = False


def _below(directory: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{directory}/{name}.py" for name in names)


_METADATA_TESTS = ("tests/unit/rlmm",)
# Without the tests of random compaction, which take minutes.
_FOLD_TESTS = (
    "tests/unit/rlmm/events",
    *_below(
        "tests/unit/rlmm",
        "fold/test_rules",
        "fold/test_fold_edges",
        "fold/test_partition_fold",
        "fold/test_record_keys_kept",
        "test_codec",
        "fold/test_made_of_fields",
        "test_newer_records",
        "state/test_anomalies",
        "state/test_log_starts",
        "fold/test_cut_off_logs",
        "test_published_format",
    ),
)
_POLICY_TESTS = ("tests/unit/rlm/policy",)

GROUPS = (
    Group(
        name="fold",
        sources=_below(
            "rlmm",
            "fold",
            "events/family",
            "events/fold_state",
            "events/segment",
            "events/parsed_segment",
            "events/claim",
            "events/local_trim",
            "events/log_start",
            "events/gaps",
            "events/loss",
            "events/offload",
            "events/offload_segment",
            "events/partition_delete",
            "events/read_lease",
            "events/anomaly",
            "events/policy",
            "events/policy_level",
            "events/pause",
            "events/registration",
            "events/secret",
            "state/anomalies",
            "state/gaps",
            "state/offload_segments",
            "state/partition_state",
        ),
        tests=_FOLD_TESTS,
        every=True,
    ),
    Group(name="trim_gate", sources=("rlm/policy/trim_gate.py",), tests=_POLICY_TESTS, every=True),
    Group(name="plan", sources=("rlm/policy/plan.py",), tests=_POLICY_TESTS, every=True),
    Group(name="candidates", sources=("rlm/policy/candidates.py",), tests=_POLICY_TESTS),
    Group(
        name="stream",
        sources=_below("rlm/policy/stream", "deletion", "permit", "ending", "merging", "reuse"),
        tests=_POLICY_TESTS,
    ),
    Group(name="retention", sources=("rlm/policy/retention.py",), tests=_POLICY_TESTS),
    Group(
        name="policy_levels",
        sources=_below(
            "rlm/policy", "topic/levels", "topic/level_combinations", "peers/differing_files"
        ),
        tests=_POLICY_TESTS,
    ),
    Group(
        name="lookup",
        sources=(
            "rlmm/lookup.py",
            "rlmm/cached_answers.py",
            "rlmm/cache/segment_view.py",
        ),
        tests=(
            "tests/unit/rlm/remote_read",
            "tests/unit/rlm/gateway/remote",
            "tests/contract/test_remote_log_metadata_manager.py",
            *_METADATA_TESTS,
        ),
    ),
    Group(
        name="lineage",
        sources=(*_below("rsm/segment", "epochs", "coverage"), "rlmm/state/log_starts.py"),
        tests=("tests/unit/rsm/segment", *_METADATA_TESTS),
    ),
    Group(
        name="fetch",
        sources=_below("rlm/gateway/fetch", "plan", "merge"),
        tests=("tests/unit/rlm/gateway",),
    ),
    Group(
        name="layouts",
        sources=_below(
            "rsm/layout",
            "raw",
            "chunked",
            "log_chunks",
            "block_v1/block_index",
            "block_v1/block_log",
            "block_v1/divided_log",
            "block_v1/layout",
            "block_v2/block_stream",
            "block_v2/layout",
            "block_v2/overlong_blocks",
            "block_v2/stream_index",
            "block_v2/ledger_stream",
            "blocks/batch_runs",
            "blocks/block_directory",
            "blocks/block_format",
            "blocks/block_plan",
            "blocks/block_sequence",
            "blocks/log_directory",
            "blocks/block_objects",
            "segment_layout",
        ),
        tests=(
            *(f"tests/unit/rsm/{room}" for room in ("layout", "pulsar", "read", "segment")),
            *_below("tests/unit/rsm", "test_object_check", "test_object_deletion", "test_transfer"),
            "tests/contract/test_remote_storage_manager.py",
            "tests/contract/test_segment_writer.py",
        ),
    ),
    Group(
        name="scanner",
        sources=_below(
            "rsm/segment/batches",
            "scanner",
            "batch",
            "batch_carry",
            "batch_checks",
            "batch_run",
            "batch_stream",
            "expectations",
            "segment_cursor",
        ),
        tests=(
            "tests/unit/rsm/segment",
            "tests/unit/rlm/remote_read",
            "tests/unit/rlm/gateway/remote",
        ),
    ),
    Group(
        name="repair",
        sources=(
            *_below("spark_tools/repair", "driver_decisions", "orphan_decisions"),
            *_below("spark_tools/repair", "proof", "execution"),
            "spark_tools/orphan_proof.py",
        ),
        tests=(
            "tests/unit/spark_tools/repair",
            "tests/unit/spark_tools/test_orphan_proof.py",
        ),
    ),
    Group(
        name="repair_of_managers",
        sources=_below("rlm/policy", "repair", "anomalies", "losses", "request/lost_segment"),
        tests=_POLICY_TESTS,
    ),
    Group(
        name="removal",
        sources=_below(
            "rlm/policy", "removal", "leftovers", "shedding", "gaps", "topic/disable_gate"
        ),
        tests=_POLICY_TESTS,
    ),
    Group(
        name="guards",
        sources=(
            *_below(
                "rlm/policy",
                "peers/gateways",
                "read_leases",
                "share_groups",
                "request/dead_letters",
            ),
            "rlmm/registration.py",
        ),
        tests=(*_POLICY_TESTS, "tests/unit/rlmm/test_registration.py"),
    ),
    Group(
        name="batch_decisions",
        sources=(
            *_below("spark_tools/repair", "batch_decisions", "dead_letters", "misplaced"),
            "spark_tools/audit/settling.py",
        ),
        tests=("tests/unit/spark_tools/repair", "tests/unit/spark_tools/audit/test_settling.py"),
    ),
    Group(
        name="read_plan",
        sources=_below("spark_tools/reading", "plan", "planner"),
        tests=("tests/unit/spark_tools/reading",),
    ),
)


def chosen_groups(names: Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of these names, or all groups if `names` is empty.

    Raises ValueError for a name without a group.
    """
    by_name = {group.name: group for group in GROUPS}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        known = ", ".join(by_name)
        raise ValueError(f"no group is named {', '.join(unknown)}; the groups are {known}")
    return tuple(by_name[name] for name in names) if names else GROUPS
