"""`rlm-repair` over a real broker, a real S3 server and Spark's own Kafka connector."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rlmm.dead_letters.dead_letter import DeadLetter, decode, encode
from rlmm.proto import dead_letter_pb2 as pb
from rsm.segment.errors import InvalidConfigError
from rsm.segment.metadata import SegmentState
from spark_tools.repair.command import command_parser, repair
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.integration.spark_tools.repair_program import killed_at_exit
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    OWNER,
    segment_metadata,
    step,
)
from tests.services.kafka import admin_client
from tests.services.s3 import S3Server
from tests.services.waiting import wait_until


def arguments(world: RepairWorld, *more: str) -> argparse.Namespace:
    return command_parser().parse_args([*world.arguments, "--yes", *more])


def test_repair_when_letters_are_of_every_kind_then_only_what_is_proved_is_deleted(
    host: BrokerHost,
    world: RepairWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scenarios 74 and 79, R22. A second run without a checkpoint does no harm."""
    with host.metadata() as metadata:
        world.claim(metadata)
        deleted = [world.store(metadata, DELETE_STARTED) for _ in range(5)]
        alive = world.store(metadata, FINISHED)
        world.send(*deleted, deleted[0], alive, b"no letter")
        unknown = world.dead_letter(segment_metadata(77, partition=world.partition))
        world.send(unknown)
        kept = set(alive.metadata.object_keys)
        expected = "refused 2\nrepaired 5\nsuperseded 1\nunreadable 1\n"

        for batch, repaired in (("3", 6), ("9", 5)):
            assert repair(arguments(world, "--dry-run", "--batch", batch)) == 5
            said = capsys.readouterr().out
            assert said.startswith(f"would refuse 2\nwould repair {repaired}\n")
            assert said.endswith("would park as unreadable 1\n")
        assert len(world.names()) == 12

        assert repair(arguments(world, "--checkpoint", str(tmp_path / "first"))) == 5

        assert capsys.readouterr().out == expected
        assert world.names() == kept
        metadata.caught_up(world.partition)
        for each in deleted:
            record = metadata.segment(each.metadata.segment_id)
            assert record is not None
            assert record.metadata.state is SegmentState.DELETE_SEGMENT_FINISHED
        still = metadata.segment(alive.metadata.segment_id)
        assert still is not None
        assert still.metadata.state is FINISHED
        reasons = sorted(headers["reason"] for _, headers in world.received(world.parked))
        assert [reason.split(b":")[0].split(b",")[0] for reason in reasons] == [
            b"cannot be read",
            b"the segment is unknown",
            b"the segment's state is COPY_SEGMENT_FINISHED",
        ]

        repair(arguments(world, "--checkpoint", str(tmp_path / "replay")))

        assert "repaired 5\n" in capsys.readouterr().out
        assert world.names() == kept


def test_repair_when_a_later_record_of_the_key_is_out_of_order_then_the_letter_is_done(
    host: BrokerHost, world: RepairWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario 79: only a valid dead letter supersedes another; none is lost."""
    with host.metadata() as metadata:
        world.claim(metadata)
        first, second, third, another = (world.store(metadata, DELETE_STARTED) for _ in range(4))
    short = replace(third, metadata=replace(third.metadata, objects=()))
    world.send(first, first, second, third, short)
    world.send(b"no letter", key=encode(first).key)
    world.send(encode(another).value, key=encode(second).key)

    repair(arguments(world, "--checkpoint", str(tmp_path / "checkpoint")))

    output = capsys.readouterr().out
    assert output == "refused 2\nrepaired 3\nsuperseded 1\nunreadable 1\n"
    assert world.names() == set(another.metadata.object_keys)
    values = {value for value, _ in world.received(world.parked)}
    assert values == {b"no letter", encode(another).value, encode(short).value}


def test_repair_when_a_record_is_as_large_as_a_broker_takes_then_parked_cut_off(
    host: BrokerHost, world: RepairWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario 79: a record that the job cannot write back would stop it permanently."""
    with host.metadata():
        pass
    large = b"\xff" * 1_048_000
    world.send(large)

    repair(arguments(world, "--checkpoint", str(tmp_path / "checkpoint")))

    assert capsys.readouterr().out == "unreadable 1\n"
    ((value, headers),) = world.received(world.parked)
    assert large.startswith(value)
    assert headers["from"] == f"{world.dead_letters}-0@0".encode()
    assert b"is truncated" in headers["reason"]


def test_repair_when_given_an_interval_then_later_dead_letters_too_until_stopped(
    host: BrokerHost,
    world: RepairWorld,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with host.metadata() as metadata, ThreadPoolExecutor(1) as pool:
        world.claim(metadata)
        first, later = (world.store(metadata, DELETE_STARTED) for _ in range(2))
        world.send(first)

        def state(dead_letter: DeadLetter) -> SegmentState | None:
            metadata.caught_up(world.partition)
            record = metadata.segment(dead_letter.metadata.segment_id)
            return None if record is None else record.metadata.state

        def send_later_and_stop() -> None:
            try:
                wait_until(lambda: state(first) is DELETE_FINISHED, deadline_s=120.0)
                assert world.names() == set(later.metadata.object_keys)
                world.send(later)
                wait_until(lambda: state(later) is DELETE_FINISHED, deadline_s=120.0)
            finally:
                for query in spark.streams.active:
                    stop_between_batches(query)

        stopped = pool.submit(send_later_and_stop)
        repair(arguments(world, "--checkpoint", str(tmp_path / "checkpoint"), "--interval", "1"))
        stopped.result()

    assert capsys.readouterr().out == "repaired 2\n"
    assert world.names() == set()


def stop_between_batches(query: StreamingQuery) -> None:
    wait_until(lambda: not query.status["isTriggerActive"], deadline_s=60.0)
    query.stop()


def test_repair_when_the_store_is_out_of_reach_then_letters_wait_as_they_were(
    host: BrokerHost,
    world: RepairWorld,
    s3_server: S3Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An outage does not count as an attempt of a dead letter."""
    with host.metadata() as metadata:
        world.claim(metadata)
        dead_letter = world.store(metadata, DELETE_STARTED)
    world.send(dead_letter)
    settings = ("--checkpoint", str(tmp_path / "checkpoint"), "--max-attempts", "1")
    s3_server.stop()
    try:
        repair(arguments(world, *settings, "--option", "rsm.config.storage.s3.max.attempts=1"))
    finally:
        s3_server.start()

    assert capsys.readouterr().out == "waiting 1\n"
    assert [decode(value) for value, _ in world.received(world.dead_letters)] == [
        dead_letter,
        dead_letter,
    ]
    repair(arguments(world, *settings))
    assert world.names() == set()


def test_repair_when_parked_dead_letters_are_repaired_then_a_new_checkpoint_brings_them_back(
    host: BrokerHost, world: RepairWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This is the procedure in docs/spark.md."""
    with host.metadata() as metadata:
        world.claim(metadata)
        dead_letter = world.store(metadata, FINISHED)
        world.send(dead_letter)
        repair(arguments(world, "--checkpoint", str(tmp_path / "checkpoint")))
        assert capsys.readouterr().out == "refused 1\n"
        segment = replace(dead_letter.metadata, state=FINISHED)
        event = step(segment, DELETE_STARTED, by=OWNER, expected_state=FINISHED)
        assert metadata.publish(event).accepted

    repair(arguments(world, "--checkpoint", str(tmp_path / "checkpoint")))
    assert capsys.readouterr().out == "nothing to repair: there are no new dead letters\n"
    repair(arguments(world, "--checkpoint", str(tmp_path / "new")))

    assert capsys.readouterr().out == "repaired 1\n"
    assert world.names() == set()


def test_repair_when_killed_in_the_middle_then_run_again_it_finishes_and_does_no_harm(
    host: BrokerHost, world: RepairWorld, connector: Path, tmp_path: Path
) -> None:
    """Scenario 74: the killed job is another process, between two batches or within one."""
    deleted, alive = send_many(host, world)
    everything = world.names()
    kept = set(alive.metadata.object_keys)
    checkpoint = tmp_path / "checkpoint"

    settings = ("--yes", "--jars", str(connector), "--checkpoint", str(checkpoint), "--batch", "2")
    with killed_at_exit(world, tmp_path, *settings):
        wait_until(lambda: len(world.names()) < len(everything), deadline_s=120.0)

    left = world.names()
    assert kept < left < everything
    repair(arguments(world, "--checkpoint", str(checkpoint)))
    require_only_alive(host, world, deleted, alive)


def test_repair_when_two_do_the_same_letters_at_once_then_each_is_done_and_no_harm(
    host: BrokerHost,
    world: RepairWorld,
    connector: Path,
    tmp_path: Path,
) -> None:
    """Scenario 74: the second job starts while the first, another process, is within a batch."""
    deleted, alive = send_many(host, world)
    everything = world.names()
    theirs = (
        "--yes",
        "--jars",
        str(connector),
        "--checkpoint",
        str(tmp_path / "theirs"),
        "--batch",
        "2",
    )

    with killed_at_exit(world, tmp_path, *theirs) as other:
        wait_until(lambda: len(world.names()) < len(everything), deadline_s=120.0)
        assert (
            len(world.names()) > len(everything) / 2
        )  # the other process has most batches still to do
        repair(arguments(world, "--checkpoint", str(tmp_path / "ours"), "--batch", "8"))
        assert other.wait(deadline_s=120.0) == 5  # the dead letter of a finished segment is refused

    require_only_alive(host, world, deleted, alive)


def send_many(host: BrokerHost, world: RepairWorld) -> tuple[list[DeadLetter], DeadLetter]:
    """Send dead letters of segments that are being deleted, and one of a finished segment."""
    with host.metadata() as metadata:
        world.claim(metadata)
        deleted = [world.store(metadata, DELETE_STARTED) for _ in range(10)]
        alive = world.store(metadata, FINISHED)
    world.send(*deleted, alive)
    return deleted, alive


def require_only_alive(
    host: BrokerHost, world: RepairWorld, deleted: list[DeadLetter], alive: DeadLetter
) -> None:
    """Check that all dead letters of `send_many` are done, and the finished segment is whole."""
    assert world.names() == set(alive.metadata.object_keys)
    with host.metadata() as metadata:
        for dead_letter in (*deleted, alive):
            record = metadata.segment(dead_letter.metadata.segment_id)
            assert record is not None
            assert record.metadata.state is (FINISHED if dead_letter is alive else DELETE_FINISHED)
    reasons = {headers["reason"] for _, headers in world.received(world.parked)}
    assert reasons == {b"the segment's state is COPY_SEGMENT_FINISHED"}


def test_repair_when_a_letter_is_of_a_newer_version_then_it_waits_and_is_seldom_written_again(
    host: BrokerHost,
    world: RepairWorld,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R14: the dead letter waits for a newer job. Meanwhile the job rests, and can be stopped."""
    with host.metadata() as metadata:
        world.claim(metadata)
        dead_letter = world.store(metadata, DELETE_STARTED)
    message = pb.DeadLetter.FromString(encode(dead_letter).value)
    message.min_fold_version = 9
    newer = message.SerializeToString()
    world.send(newer)

    def written() -> list[bytes]:
        return [value for value, _ in world.received(world.dead_letters)]

    def stop_while_it_rests() -> None:
        jobs = spark.sparkContext.statusTracker()
        try:
            wait_until(
                lambda: len(written()) == 2 and not jobs.getActiveJobsIds(), deadline_s=120.0
            )
        finally:
            for query in spark.streams.active:
                query.stop()

    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(stop_while_it_rests)
        repair(arguments(world, "--checkpoint", str(tmp_path / "checkpoint"), "--interval", "1"))
        stopped.result()

    assert capsys.readouterr().out == "waiting 1\n"
    assert written() == [newer, newer]
    assert world.received(world.parked) == []
    assert world.names() == set(dead_letter.metadata.object_keys)


def test_repair_when_the_user_is_wrong_then_reported_before_any_work(
    host: BrokerHost, world: RepairWorld, tmp_path: Path
) -> None:
    with host.metadata():
        pass
    checkpoint = tmp_path / "checkpoint" / "offsets"
    checkpoint.mkdir(parents=True)
    (checkpoint / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"elsewhere":{"0":3}}\n')

    with pytest.raises(InvalidConfigError, match="it belongs to another topic"):
        repair(arguments(world, "--checkpoint", str(checkpoint.parent)))
    with pytest.raises(InvalidConfigError, match="--checkpoint is missing"):
        repair(arguments(world))
    missing = "remote.delete.dead.letter.topic=missing"
    with pytest.raises(InvalidConfigError, match="cannot find the topic"):
        repair(arguments(world, "--dry-run", "--option", missing))


def test_repair_when_the_dead_letter_topic_was_created_again_then_its_checkpoint_is_refused(
    host: BrokerHost, world: RepairWorld, tmp_path: Path
) -> None:
    """Otherwise the new topic's first dead letters would count as done.

    A checkpoint without an id gets one.
    """
    checkpoint = tmp_path / "checkpoint"
    noted = checkpoint / "letter-topic-id"
    with host.metadata() as metadata:
        world.claim(metadata)
        world.send(world.store(metadata, DELETE_STARTED))
    repair(arguments(world, "--checkpoint", str(checkpoint)))
    former = noted.read_text()
    noted.unlink()
    noted.with_name(f".{noted.name}.crc").unlink()
    repair(arguments(world, "--checkpoint", str(checkpoint)))
    assert noted.read_text() == former

    admin = admin_client(world.servers)
    admin.delete_topics([world.dead_letters])[world.dead_letters].result(30.0)
    wait_until(lambda: world.dead_letters not in admin.list_topics(timeout=10.0).topics)
    host.cluster.create_topic(world.dead_letters)

    with pytest.raises(InvalidConfigError, match=f"of the same name.*found={former}"):
        repair(arguments(world, "--checkpoint", str(checkpoint)))
    assert noted.read_text() == former


def test_repair_when_no_letter_was_ever_written_then_there_is_nothing_to_repair(
    twins: TwinTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default dead-letter topic does not exist, and the user named no other."""
    config = ("--config", str(twins.host.config_path))
    checkpoint = ("--checkpoint", str(tmp_path / "checkpoint"))

    for more in (("--dry-run",), checkpoint):
        assert repair(command_parser().parse_args([*config, "--yes", *more])) == 0
        assert capsys.readouterr().out == (
            "nothing to repair: there is no topic __remote_segments_to_be_deleted yet\n"
        )
    with pytest.raises(InvalidConfigError, match="cannot find the topic"):
        repair(command_parser().parse_args([*config, *checkpoint, "--yes", "--interval", "1"]))
