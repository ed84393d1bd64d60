from __future__ import annotations

import pickle
from pathlib import Path
from uuid import UUID

import pytest

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings
from spark_tools.connection import ClusterConnection, refused_client

_SEGMENT_ID = RemoteLogSegmentId(
    topic_id_partition=TopicIdPartition(topic_id=UUID(int=7), topic="orders", partition=0),
    id=UUID(int=1),
)
_S3 = {
    "bootstrap.servers": "broker:9092",
    "rsm.config.storage.backend": "s3",
    "rsm.config.storage.s3.bucket.name": "segments",
}


def test_connection_when_options_and_a_file_differ_then_options_win(tmp_path: Path) -> None:
    config = tmp_path / "rlm.properties"
    config.write_text(
        "bootstrap.servers=a:1\nclient.security.protocol=SSL\nlog.dirs=/x\n"
        f"rsm.config.storage.filesystem.root={tmp_path}\nrsm.config.key.prefix=cold\n"
    )

    found = ClusterConnection.of({"config": str(config), "kafka.bootstrap.servers": "b:2"})

    assert found.client == {"bootstrap.servers": "b:2", "security.protocol": "SSL"}
    assert found.store.settings == FilesystemSettings(root=tmp_path)
    assert found.store.key_prefix == "cold"
    assert found.metadata_topic == "__remote_log_segment_metadata"


@pytest.mark.parametrize("content", [rb"key=\u12", b"key=\xff"])
def test_connection_when_its_file_is_malformed_then_the_file_is_named(
    content: bytes, tmp_path: Path
) -> None:
    config = tmp_path / "rlm.properties"
    config.write_bytes(content)

    with pytest.raises(InvalidConfigError, match="configuration file") as raised:
        ClusterConnection.of({"config": str(config)})

    assert str(config) in str(raised.value)


def test_connection_when_the_client_has_a_password_then_never_shown() -> None:
    found = ClusterConnection.of({**_S3, "client.sasl.password": "hush"})

    assert "hush" not in repr(found)


def test_connection_when_segments_are_in_a_bucket_then_that() -> None:
    options = {
        **_S3,
        "rsm.config.storage.s3.endpoint.url": "http://127.0.0.1:1",
        "rsm.config.storage.s3.path.style.access.enabled": "True",
        "rsm.config.storage.s3.max.attempts": "5",
    }

    assert ClusterConnection.of(options).store.settings == S3Settings(
        bucket="segments", endpoint_url="http://127.0.0.1:1", path_style=True, max_attempts=5
    )


def test_connection_when_no_letter_topic_is_named_then_the_default_one() -> None:
    named = ClusterConnection.of({**_S3, "remote.delete.dead.letter.topic": "letters"})
    default = ClusterConnection.of(_S3)

    assert (named.dead_letter_topic, named.dead_letter_topic_is_named) == ("letters", True)
    assert (default.dead_letter_topic, default.dead_letter_topic_is_named) == (
        "__remote_segments_to_be_deleted",
        False,
    )


@pytest.mark.parametrize(
    ("given", "grace_ms"), [("", 86_400_000), ("7d", 604_800_000), ("5000", 5_000), ("0", 0)]
)
def test_connection_when_the_grace_has_a_unit_or_none_then_it_counts(
    given: str, grace_ms: int
) -> None:
    options = {**_S3, "remote.orphan.grace.ms": given} if given else _S3

    assert ClusterConnection.of(options).orphan_grace_ms == grace_ms


def test_connection_when_the_grace_is_no_duration_then_refused() -> None:
    found = ClusterConnection.of({**_S3, "remote.orphan.grace.ms": "1w"})

    with pytest.raises(InvalidConfigError, match=r"remote\.orphan\.grace\.ms, found=1w"):
        _ = found.orphan_grace_ms


def test_connection_when_a_setting_of_its_file_is_invalid_then_file_and_line_are_named(
    tmp_path: Path,
) -> None:
    file = tmp_path / "rlm.properties"
    file.write_text("bootstrap.servers=a:1\nrsm.config.storage.backend=tape\n")

    with pytest.raises(InvalidConfigError) as of_file:
        ClusterConnection.of({"config": str(file)})
    with pytest.raises(InvalidConfigError) as overridden:
        ClusterConnection.of({"config": str(file), "rsm.config.storage.backend": "disk"})

    where = {name: of_file.value.context.get(name) for name in ("file", "line", "key")}
    assert where == {"file": str(file), "line": 2, "key": "rsm.config.storage.backend"}
    assert overridden.value.context["option"] == "rsm.config.storage.backend"
    assert "file" not in overridden.value.context


def test_connection_when_the_client_rejects_a_setting_then_named_without_a_secret() -> None:
    client = {"sasl.password": "hush", "sasl.pasword": "x"}

    named = refused_client(client, 'No such configuration property: "sasl.pasword"')
    hidden = refused_client(client, "invalid value hush")

    assert named.context["key"] == "client.sasl.pasword"
    assert "hush" not in str(hidden)


def test_connection_when_a_file_has_sizes_and_durations_then_jobs_read_it(tmp_path: Path) -> None:
    """`rlm run` accepts them in the same file."""
    file = tmp_path / "rlm.properties"
    lines = {**_S3, "rsm.config.chunk.size": "4MiB", "remote.orphan.grace.ms": "2h"}
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))

    found = ClusterConnection.of({"config": str(file)})

    assert found.orphan_grace_ms == 7_200_000
    plain = ClusterConnection.of({**_S3, "rsm.config.chunk.size": "4194304"})
    assert found.store == plain.store


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "a:1"}, "rsm.config.storage.filesystem.root"),
        ({**_S3, "rsm.config.storage.s3.bucket.name": ""}, "rsm.config.storage.s3.bucket.name"),
        ({**_S3, "rsm.config.storage.s3.max.attempts": "0"}, "rsm.config.storage.s3.max.attempts"),
        ({**_S3, "rsm.config.storage.backend": "tape"}, "rsm.config.storage.backend"),
        ({**_S3, "rsm.config.key.prefix": "tiered/"}, "rsm.config.key.prefix"),
        ({**_S3, "remote.delete.dead.letter.topic": ""}, "remote.delete.dead.letter.topic"),
        (
            {**_S3, "rlmm.config.remote.log.metadata.topic.name": " "},
            "rlmm.config.remote.log.metadata.topic.name",
        ),
        ({"config": "/nowhere/rlm.properties"}, "/nowhere/rlm.properties"),
    ],
)
def test_connection_when_something_is_missing_or_wrong_then_named(
    options: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        ClusterConnection.of(options)


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ({"rsm.config.storage.filesystem.root": "/nowhere"}, "cannot access the store"),
        (
            {
                **_S3,
                "rsm.config.storage.s3.endpoint.url": "http://127.0.0.1:1",
                "rsm.config.storage.s3.max.attempts": "1",
                "rsm.config.storage.s3.region": "us-east-1",
            },
            "cannot list the store",
        ),
    ],
)
def test_store_when_it_does_not_answer_then_says_why(store: dict[str, str], reason: str) -> None:
    connection = ClusterConnection.of({"bootstrap.servers": "a:1", **store})

    with pytest.raises(InvalidConfigError, match=reason):
        connection.store.require_listing()


def test_store_when_nothing_is_below_its_prefix_yet_then_it_can_be_listed(tmp_path: Path) -> None:
    options = {"rsm.config.storage.filesystem.root": str(tmp_path), "rsm.config.key.prefix": "cold"}

    ClusterConnection.of({"bootstrap.servers": "a:1", **options}).store.require_listing()

    assert not list(tmp_path.iterdir())


def test_client_when_options_name_another_user_and_cluster_then_they_win_over_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rlm.properties"
    path.write_text(
        "bootstrap.servers=of-file:9092\nclient.sasl.username=manager\n"
        "client.sasl.password=secret\nclient.socket.timeout.ms=7\n"
        "rsm.config.storage.filesystem.root=/store\n"
    )
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="me" password="mine";'
    )
    options = {
        "config": str(path),
        "kafka.bootstrap.servers": "of-option:9092",
        "kafka.sasl.jaas.config": jaas,
        "client.client.id": "x",
    }

    client = ClusterConnection.of(options, takes_kafkas=True).client

    assert client == {
        "bootstrap.servers": "of-option:9092",
        "sasl.username": "me",
        "sasl.password": "mine",
        "socket.timeout.ms": "7",
        "client.id": "x",
    }


_PLUGIN = "tests.plugin_example.rlm_example"


def test_connection_when_store_and_layout_are_plug_ins_then_an_executor_opens_them(
    tmp_path: Path,
) -> None:
    options = {
        "bootstrap.servers": "a:1",
        "rsm.config.storage.backend": f"{_PLUGIN}.storage:SqliteChunkStorage",
        "rsm.config.storage.path": str(tmp_path / "store"),
        "rsm.config.layout": f"{_PLUGIN}.layout:LabeledLayout",
    }
    sent = pickle.loads(pickle.dumps(ClusterConnection.of(options)))  # noqa: S301 - of this test

    sent.store.require_answer()
    storage = sent.store.open()
    planned = storage.plan_objects(_SEGMENT_ID, 0, size_bytes=1)
    storage.close()

    assert planned.layout == "labeled"
    assert (tmp_path / "store").is_file()


def test_connection_when_the_storage_manager_is_a_plug_in_then_segments_are_read_but_not_listed(
    tmp_path: Path,
) -> None:
    connection = ClusterConnection.of(
        {
            "bootstrap.servers": "a:1",
            "remote.log.storage.manager.class.name": f"{_PLUGIN}.manager:ArchiveStorageManager",
            "rsm.config.storage.filesystem.root": str(tmp_path),
            "rsm.config.archive.root": str(tmp_path),
        }
    )

    connection.store.require_answer()
    connection.store.open().close()
    with pytest.raises(InvalidConfigError, match=r"remote\.log\.storage\.manager\.class\.name"):
        connection.store.require_own_manager()


def test_connection_when_a_plug_in_cannot_be_used_then_the_driver_names_it(tmp_path: Path) -> None:
    connection = ClusterConnection.of(
        {
            "bootstrap.servers": "a:1",
            "rsm.config.storage.filesystem.root": str(tmp_path),
            "rsm.config.layout": "raw,absent.module:Layout",
        }
    )

    with pytest.raises(InvalidConfigError, match=r"plugin=absent\.module:Layout"):
        connection.store.require_answer()
