"""R9: the originals are mirrored in the store, and come back from there."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.topic.topic_policy import PolicyFlags
from rlm.topics.originals_mirror import OriginalsMirror, StoredOriginals
from rlm.topics.originals_restore import OriginalsRestore
from rlmm.events.policy import OriginalConfig, PolicySetting, PolicyState, topic_policies
from rlmm.events.policy_level import PolicyLevel
from rlmm.topic.memory import MemoryLog
from rsm.layout.originals import (
    OriginalSettings,
    OriginalsKey,
    OriginalsKeys,
    encode_originals,
)
from rsm.segment.errors import CorruptError, InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import BytesSource
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from tests.fakes.broker import MemoryBroker
from tests.fakes.replica import Replica
from tests.unit.rlm.topics.tiering_world import TIMEOUT_MS, TIP, TOPIC, TOPIC_ID, Process, World

OTHER = TopicIdPartition(topic_id=UUID(int=8), topic="payments", partition=0)
BEFORE = {"retention.ms": "1000", "retention.bytes": None}
ORDERS = PolicyLevel(pattern="orders*", retention_ms=60_000, retention_bytes=5000)
LIFTED = {"retention.ms": "-1", "retention.bytes": "-1"}


class MirroredWorld(World):
    """A world whose managers have a store. The topic is tiered, and had its own retention."""

    def __init__(self) -> None:
        super().__init__()
        self.objects = MemoryChunkStorage(wall_ms=self.clock.wall_ms)
        self.stored = StoredOriginals(self.objects, OriginalsKeys(prefix="p"))
        self.topics.set({"retention.ms": "1000"})
        self.enable(self.process())

    def enable(self, process: Process) -> None:
        process.tiering.enable(TOPIC, PolicyFlags(), timeout_ms=TIMEOUT_MS)

    def mirror(self, process: Process | None = None, *, leads: bool = True) -> OriginalsMirror:
        replica = Replica(leader_epoch=0 if leads else None)
        metadata = (process or self.process()).metadata
        return OriginalsMirror(
            self.stored, metadata=metadata, broker=MemoryBroker(1, {TIP: replica})
        )

    def kept(self) -> OriginalSettings | None:
        return self.stored.of_topic(TOPIC, TOPIC_ID)

    def lose_metadata(self) -> None:
        self.log = MemoryLog(self.clock)


def settings(values: dict[str, str | None]) -> OriginalSettings:
    return OriginalSettings(topic=TOPIC, topic_id=TOPIC_ID, values=values)


def test_step_when_a_topic_was_tiered_then_its_originals_are_in_the_store_once() -> None:
    world = MirroredWorld()
    mirror = world.mirror()

    mirror.step()
    mirror.step()
    world.mirror().step()

    assert world.kept() == settings(BEFORE)
    assert len(list(world.objects.list(""))) == 1


def test_step_when_others_lead_the_topic_then_leaves_it_to_them() -> None:
    world = MirroredWorld()

    world.mirror(leads=False).step()

    assert world.kept() is None


def test_step_when_tiering_was_ended_then_nothing_is_kept() -> None:
    world = MirroredWorld()
    process = world.process()
    mirror = world.mirror(process)
    mirror.step()
    process.ending.disable(TOPIC, delete_remote=False, force=True, timeout_ms=TIMEOUT_MS)

    mirror.step()

    assert process.policy().state is PolicyState.DISABLED
    assert list(world.objects.list("")) == []


def test_step_when_originals_are_others_then_the_newest_hold() -> None:
    world = MirroredWorld()
    process = world.process()
    mirror = world.mirror(process)
    mirror.step()
    newer = (OriginalConfig(name="retention.ms", value="7"),)
    process.overwrite(replace(process.policy(), originals=newer))

    mirror.step()

    assert world.kept() == settings({"retention.ms": "7"})


@pytest.mark.parametrize(
    ("content", "after"), [(b"x", BEFORE), (b'{"format": 99}', None)], ids=["corrupt", "newer"]
)
def test_step_when_a_copy_cannot_be_read_then_that_of_the_next_topic_is_stored(
    content: bytes, after: dict[str, str | None] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The mirror replaces a corrupt copy, and keeps a copy of a newer version."""
    world = MirroredWorld()
    key = OriginalsKey(topic=TOPIC, topic_id=TOPIC_ID, number=0)
    name = OriginalsKeys(prefix="p").build(key)
    world.objects.create_with_content(name, BytesSource(content=content))
    process = world.process()
    process.overwrite(replace(process.policy(), topic=OTHER.topic, topic_id=OTHER.topic_id))
    replicas = {tip: Replica(leader_epoch=0) for tip in (TIP, OTHER)}
    mirror = OriginalsMirror(
        world.stored, metadata=process.metadata, broker=MemoryBroker(1, replicas)
    )

    mirror.step()
    mirror.step()

    assert world.stored.of_topic(OTHER.topic, OTHER.topic_id) is not None
    found = world.stored.all().get(TOPIC_ID)
    assert (None if found is None else found.values) == after
    assert caplog.text.count("cannot store a topic's own retention") == (after is None)


def test_step_when_a_copy_is_corrupt_and_the_originals_are_minus_one_then_writes_nothing() -> None:
    """The -1 may come from `rlm`."""
    world = MirroredWorld()
    process = world.process()
    lifted = tuple(OriginalConfig(name=name, value=value) for name, value in LIFTED.items())
    process.overwrite(replace(process.policy(), originals=lifted))
    key = OriginalsKey(topic=TOPIC, topic_id=TOPIC_ID, number=0)
    name = OriginalsKeys(prefix="p").build(key)
    world.objects.create_with_content(name, BytesSource(content=b"x"))

    world.mirror(process).step()

    assert [info.name for info in world.objects.list("")] == [name]


def test_step_when_the_metadata_is_lost_then_what_is_kept_stays() -> None:
    """A missing policy does not mean that the topic is not tiered."""
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()

    world.mirror().step()

    assert world.kept() == settings(BEFORE)


def test_step_when_tiered_again_without_the_old_policy_then_minus_one_replaces_nothing() -> None:
    """The -1 that the new policy records comes from the earlier tiering."""
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    process = world.process()
    world.enable(process)
    assert {each.value for each in process.policy().originals} == {"-1"}

    world.mirror(process).step()

    assert world.kept() == settings(BEFORE)


def test_step_when_the_store_fails_then_tries_again() -> None:
    world = MirroredWorld()
    failing = FaultyChunkStorage(world.objects, FaultPlan(fail_share=1.0))
    process = world.process()
    mirror = OriginalsMirror(
        StoredOriginals(failing, OriginalsKeys(prefix="p")),
        metadata=process.metadata,
        broker=MemoryBroker(1, {TIP: Replica(leader_epoch=0)}),
    )

    with pytest.raises(RetriableError):
        mirror.step()

    assert world.kept() is None


def test_enable_when_the_policy_was_lost_then_recalls_what_the_store_keeps() -> None:
    """`rlm` set the present -1: the earlier values have to be restored."""
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    world.recall = world.stored.of_topic
    process = world.process()

    world.enable(process)

    policy = process.policy()
    assert {each.name: each.value for each in policy.originals} == BEFORE
    assert (policy.retention_ms, policy.untiered_retention_ms) == (1000, 1000)
    assert policy.inherited == frozenset(PolicySetting) - {PolicySetting.RETENTION_MS}


def lost_world() -> MirroredWorld:
    """Return a world whose policy was lost, with a pattern that tiers the topic."""
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    world.recall = world.stored.of_topic
    world.process().set_level(ORDERS)
    return world


def test_inheritance_when_the_policy_was_lost_then_has_the_retention_from_before_tiering() -> None:
    """The topic's own time limit wins over the pattern, which gives the size limit."""
    process = lost_world().process()

    process.inheritance().step()

    policy = process.policy()
    assert {each.name: each.value for each in policy.originals} == BEFORE
    assert (policy.retention_ms, policy.retention_bytes) == (1000, 5000)
    assert (policy.untiered_retention_ms, policy.untiered_retention_bytes) == (1000, -1)


def test_disable_when_a_pattern_tiered_the_topic_after_the_loss_then_restores_the_originals() -> (
    None
):
    world = lost_world()
    process = world.process()
    mirror = world.mirror(process)
    process.inheritance().step()
    process.keeper().step()
    mirror.step()

    process.ending.disable(TOPIC, delete_remote=False, force=True, timeout_ms=TIMEOUT_MS)

    assert world.topics.overrides == {"retention.ms": "1000"}


def test_inheritance_when_the_store_does_not_answer_then_waits_for_it() -> None:
    """**Data loss:** without its answer, -1 would become the topic's originals."""
    world = lost_world()
    failing = FaultyChunkStorage(world.objects, FaultPlan(fail_share=1.0))
    world.recall = StoredOriginals(failing, OriginalsKeys(prefix="p")).of_topic
    process = world.process()

    process.inheritance().step()
    waiting = topic_policies(process.metadata)
    world.recall = world.stored.of_topic
    process.inheritance().step()

    assert waiting == ()
    assert {each.name: each.value for each in process.policy().originals} == BEFORE


def test_disable_when_the_policy_was_lost_then_refused_and_the_originals_stay() -> None:
    world = lost_world()
    process = world.process()

    with pytest.raises(InvalidConfigError, match="policy was lost"):
        process.ending.disable(TOPIC, delete_remote=False, force=True, timeout_ms=TIMEOUT_MS)

    assert topic_policies(process.metadata) == ()
    assert world.kept() == settings(BEFORE)


def restore_of(world: MirroredWorld) -> OriginalsRestore:
    metadata = world.process().metadata
    return OriginalsRestore(world.stored, topics=world.topics, metadata=metadata)


def test_restore_when_the_metadata_is_lost_then_the_retention_is_as_it_was() -> None:
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    restore = restore_of(world)

    for lost in restore.lost():
        restore.restore(lost)

    assert world.topics.overrides == {"retention.ms": "1000"}
    assert restore.lost() == ()
    assert world.kept() is None


def test_restore_when_the_copy_cannot_be_deleted_then_the_retention_is_restored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    (lost,) = restore_of(world).lost()
    failing = FaultyChunkStorage(world.objects, FaultPlan(fail_share=1.0))
    world.stored = StoredOriginals(failing, OriginalsKeys(prefix="p"))

    restore_of(world).restore(lost)

    assert world.topics.overrides == {"retention.ms": "1000"}
    assert "cannot delete a topic's own retention from the store" in caplog.text


def test_lost_when_the_originals_of_a_topic_cannot_be_read_then_those_of_others_are_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    newer = OriginalsKey(topic="newer", topic_id=UUID(int=5), number=0)
    content = BytesSource(content=b'{"format": 99}')
    world.objects.create_with_content(OriginalsKeys(prefix="p").build(newer), content)

    assert [each.topic for each in restore_of(world).lost()] == [TOPIC]
    assert "skipped a topic's own retention" in caplog.text


@pytest.mark.parametrize(
    "values",
    [
        {**BEFORE, "cleanup.policy": "compact"},
        {"retention.ms": "1 week"},
    ],
)
def test_lost_when_the_store_has_other_settings_than_a_retention_then_does_not_offer_them(
    values: dict[str, str | None],
) -> None:
    """Anyone who can write to the bucket must not be able to change other settings of a topic."""
    world = MirroredWorld()
    world.lose_metadata()
    world.stored.keep(settings(values))

    assert restore_of(world).lost() == ()
    with pytest.raises(CorruptError, match="must be retention settings"):
        world.kept()


def test_lost_when_the_store_has_the_settings_of_another_topic_then_does_not_offer_them() -> None:
    world = MirroredWorld()
    world.lose_metadata()
    key = OriginalsKey(topic="other", topic_id=UUID(int=5), number=0)
    content = BytesSource(content=encode_originals(settings(BEFORE)))
    world.objects.create_with_content(OriginalsKeys(prefix="p").build(key), content)

    assert restore_of(world).lost() == ()


def test_lost_when_a_policy_is_there_then_is_its_matter() -> None:
    world = MirroredWorld()
    world.mirror().step()

    assert restore_of(world).lost() == ()


def test_lost_when_somebody_has_set_a_retention_since_then_is_theirs() -> None:
    world = MirroredWorld()
    world.mirror().step()
    world.lose_metadata()
    world.topics.set({"retention.ms": "5"})

    assert restore_of(world).lost() == ()


def test_lost_when_the_topic_is_gone_or_another_then_is_left_out() -> None:
    world = MirroredWorld()
    world.topics.set(LIFTED)
    world.lose_metadata()
    for topic, topic_id in (("gone", UUID(int=8)), (TOPIC, UUID(int=9))):
        world.stored.keep(OriginalSettings(topic=topic, topic_id=topic_id, values=BEFORE))

    assert restore_of(world).lost() == ()


def test_of_topic_when_the_copy_is_too_large_then_corrupt() -> None:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    keys = OriginalsKeys()
    name = keys.build(OriginalsKey(topic=TOPIC, topic_id=TOPIC_ID, number=0))
    padded = encode_originals(settings({})) + (64 << 10) * b" "
    storage.create_with_content(name, BytesSource(content=padded))

    with pytest.raises(CorruptError, match="the object is too large"):
        StoredOriginals(storage, keys).of_topic(TOPIC, TOPIC_ID)
