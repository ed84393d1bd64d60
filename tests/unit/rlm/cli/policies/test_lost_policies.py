"""After the loss of policies, commands find the topics' originals in the store of their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.cli.invocation.session import CommandSession
from rlm.cli.policies.level_changes import find_change, show_change
from rlm.cli.topics.topic import preview_policy
from rlm.config.load import load_command_config
from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.originals_mirror import StoredOriginals
from rlmm.events.policy_level import PolicyLevel
from rsm.layout.originals import OriginalSettings, OriginalsKeys
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.unit.rlm.cli.command_session import session_of
from tests.unit.rlm.topics.tiering_world import TOPIC, TOPIC_ID, World

LEVEL = PolicyLevel(pattern="orders*", retention_bytes=1 << 20)
DAY_MS = 86_400_000


@pytest.fixture
def session(tmp_path: Path) -> CommandSession:
    """A command on a topic with retention -1 and a lost policy; the store has its originals."""
    root = tmp_path / "store"
    root.mkdir()
    stored = StoredOriginals(FilesystemChunkStorage(root), OriginalsKeys())
    values = {"retention.ms": str(DAY_MS), "retention.bytes": None}
    stored.keep(OriginalSettings(topic=TOPIC, topic_id=TOPIC_ID, values=values))
    path = tmp_path / "rlm.properties"
    path.write_text(
        f"bootstrap.servers=broker:9092\nrsm.config.storage.filesystem.root={root}\n"
        "rsm.config.storage.backend=filesystem\n"
    )
    process = World().process()
    process.world.topics.set({"retention.ms": "-1", "retention.bytes": "-1"})
    return session_of(process, load_command_config(path))


def test_levels_when_a_policy_was_lost_then_show_the_retention_from_before_as_a_danger(
    session: CommandSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """**Data loss:** brokers have kept all records since; the earlier retention expires them."""
    show_change(find_change(session, (LEVEL,)), dry_run=True, as_json=False)

    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        f"topic {TOPIC}: is tiered by pattern orders*",
        "  retention_ms: -1 -> 86400000 (24 h) (older data is deleted)",
        "  retention_bytes: -1 -> 1048576 (1.0 MiB) (older data is deleted)",
        (
            f"topic {TOPIC}: retention_ms unlimited -> 24 h, retention_bytes unlimited -> 1.0 MiB:"
            " older data on the broker expires"
        ),
    ]


def test_topic_when_its_policy_was_lost_then_names_what_the_retention_from_before_expires(
    session: CommandSession,
) -> None:
    policy, expiring = preview_policy(session, TOPIC, PolicyFlags(), None)

    assert policy.retention_ms == DAY_MS
    assert expiring == (
        f"topic {TOPIC}: retention_ms unlimited -> 24 h: older data on the broker expires",
    )
