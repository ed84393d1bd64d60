"""Orphans: the audit finds them, repair removes them, and other objects stay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from rlmm.dead_letters.orphan_dead_letter import decode
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import BytesSource
from spark_tools.audit.command import audit
from spark_tools.audit.command import command_parser as audit_parser
from spark_tools.quarantine import quarantined_name
from spark_tools.repair.command import command_parser as repair_parser
from spark_tools.repair.command import repair
from tests.e2e.broker_host import BrokerHost
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.metadata_builder import FINISHED, STARTED, segment_metadata, step

_NO_GRACE = ("--option", "remote.orphan.grace.ms=0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphanage:
    """A partition with [0, 100) stored, and objects that no metadata names."""

    world: RepairWorld

    @property
    def keys(self) -> ObjectKeys:
        return ObjectKeys(prefix=self.world.partition.topic)

    def plant(self, base_offset: int, partition: TopicIdPartition | None = None) -> str:
        """Create an object of a new segment; return its name."""
        tip = partition or self.world.partition
        segment_id = RemoteLogSegmentId(topic_id_partition=tip, id=uuid4())
        name = self.keys.build(
            ObjectKey(segment_id=segment_id, base_offset=base_offset, suffix="log")
        )
        self.world.storage.create_with_content(name, BytesSource(content=b"nobody's"))
        return name

    def audit(self, *more: str) -> None:
        arguments = [*self.world.arguments, *_NO_GRACE, *more]
        assert audit(audit_parser().parse_args(arguments)) == 0

    def repair(self, checkpoint: Path, *more: str, code: int = 0) -> None:
        settled = [*_NO_GRACE, "--yes", "--checkpoint", str(checkpoint)]
        arguments = [*self.world.arguments, *settled, *more]
        assert repair(repair_parser().parse_args(arguments)) == code


@pytest.fixture
def orphanage(world: RepairWorld, host: BrokerHost) -> Orphanage:
    with host.metadata() as metadata:
        world.claim(metadata)
        world.store(metadata, FINISHED)
    return Orphanage(world=world)


def test_orphans_when_deleted_then_they_are_gone_and_nothing_else(
    orphanage: Orphanage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario 84 and R22: repair deletes proven orphans after a confirmation."""
    kept = orphanage.world.names()
    orphans = {orphanage.plant(base_offset) for base_offset in (0, 7, 99)}
    kept.add(orphanage.plant(100))  # may be the only copy of its records
    stranger = TopicIdPartition(topic_id=uuid4(), topic="another-clusters", partition=0)
    kept.add(orphanage.plant(0, stranger))

    orphanage.audit("--delete", "--dry-run")
    assert (
        "would delete objects: 3 (24 bytes); kept for lack of proof: 2\n" in capsys.readouterr().out
    )
    assert orphanage.world.received(orphanage.world.dead_letters) == []

    orphanage.audit("--delete", "--yes")
    assert "requested rlm-repair to delete objects: 3 (" in capsys.readouterr().out
    assert orphanage.world.names() == kept | orphans

    orphanage.repair(tmp_path / "checkpoint")

    assert capsys.readouterr().out == "repaired 3\n"
    assert orphanage.world.names() == kept


def test_orphans_when_quarantined_then_moved_and_deleted_the_next_time(
    orphanage: Orphanage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario 84."""
    kept = orphanage.world.names()
    orphan = orphanage.plant(7)
    moved = quarantined_name(orphanage.keys, orphan)

    orphanage.audit("--quarantine", "--yes")
    orphanage.repair(tmp_path / "checkpoint")
    assert orphanage.world.names() == {*kept, moved}

    orphanage.audit("--delete", "--yes")
    assert "quarantined 1\n" in capsys.readouterr().out
    orphanage.repair(tmp_path / "checkpoint")
    assert orphanage.world.names() == kept


def test_orphans_when_too_young_they_wait_and_when_used_meanwhile_then_repair_refuses(
    orphanage: Orphanage, host: BrokerHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R22 and scenario 108: a dead letter does not prove an orphan."""
    registered, rewritten, young = (orphanage.plant(base_offset) for base_offset in (1, 2, 3))
    orphanage.audit("--delete", "--yes")
    before = orphanage.world.names()
    storage = orphanage.world.storage
    storage.delete(rewritten)
    storage.create_with_content(rewritten, BytesSource(content=b"somebody's"))
    with host.metadata() as metadata:
        register(metadata, registered, orphanage)

    capsys.readouterr()
    orphanage.repair(tmp_path / "checkpoint", "--option", "remote.orphan.grace.ms=86400000")
    assert capsys.readouterr().out == "waiting 3\n"
    assert orphanage.world.names() == before
    orphanage.repair(tmp_path / "again", code=5)

    assert capsys.readouterr().out == "refused 2\nrepaired 1\nsuperseded 3\n"
    assert orphanage.world.names() == before - {young}
    parked = orphanage.world.received(orphanage.world.parked)
    assert sorted(headers["reason"] for _, headers in parked) == [
        b"the metadata has its segment in the state COPY_SEGMENT_STARTED",
        b"the object is not the one that the audit saw",
    ]
    assert {decode(value).object_key for value, _ in parked} == {registered, rewritten}


def register(metadata: RemoteLogMetadataManager, object_key: str, orphanage: Orphanage) -> None:
    """Register the segment, as a late writer would."""
    name = orphanage.keys.parse(object_key)
    assert name is not None
    tip = name.segment_id.topic_id_partition
    segment = segment_metadata(name.segment_id.id.int, 1, 50, epochs=((0, 1),), partition=tip)
    assert metadata.publish(step(segment, STARTED)).accepted
