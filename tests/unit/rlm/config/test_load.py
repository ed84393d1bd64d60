"""The rules of the configuration file: each error names the file, the line and the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.config.load import (
    client_command_config,
    load_command_config,
    load_config,
    load_gateway_config,
)
from rlm.config.sections import known_keys
from rlm.config.values import HostPort
from rsm.config.values import CopyVerification
from rsm.segment.errors import InvalidConfigError

REQUIRED = {
    "bootstrap.servers": "a:9092, [::1]:9093",
    "log.dirs": "/var/kafka-1,/var/kafka-2",
    "state.dir": "/var/rlm",
    "rsm.config.storage.filesystem.root": "/mnt/store",
}


def _file(directory: Path, **changes: str | None) -> Path:
    entries = {**REQUIRED, **{key.replace("__", "."): value for key, value in changes.items()}}
    lines = [f"{key} = {value}" for key, value in entries.items() if value is not None]
    path = directory / "rlm.properties"
    path.write_text("\n".join(["# first line", *lines]) + "\n", encoding="utf-8")
    return path


def test_load_config_when_only_required_keys_then_defaults_are_the_documented(
    tmp_path: Path,
) -> None:
    config = load_config(_file(tmp_path))

    assert config.cluster.bootstrap_text == "a:9092,[::1]:9093"
    assert config.host.log_dirs == (Path("/var/kafka-1"), Path("/var/kafka-2"))
    assert config.metadata.topic_name == "__remote_log_segment_metadata"
    assert (config.metadata.num_partitions, config.metadata.replication_factor) == (50, 3)
    assert config.storage.key_prefix == ""
    assert config.storage.copy_verify is CopyVerification.NONE
    assert config.manager.task_interval_ms == 30_000
    assert config.manager.copy_attempt_timeout_ms == 600_000
    assert config.manager.delete_dead_letter_topic == "__remote_segments_to_be_deleted"
    assert (config.manager.delete_max_attempts, config.manager.trim_margin_bytes) == (5, 0)
    assert config.manager.trim_min_age_ms == 900_000
    assert config.manager.orphan_grace_ms == 86_400_000
    assert config.process.rest_listener is None
    assert config.process.rest_advertised_listener is None
    assert config.process.metrics_listener is None


@pytest.mark.parametrize("key", REQUIRED)
def test_load_config_when_required_key_missing_then_names_it(tmp_path: Path, key: str) -> None:
    path = _file(tmp_path, **{key: None})

    with pytest.raises(InvalidConfigError, match=rf"a setting is missing \(.*key={key}\)"):
        load_config(path)


def test_load_gateway_config_when_there_are_no_log_dirs_then_is_for_the_whole_cluster(
    tmp_path: Path,
) -> None:
    listeners = {"gateway.node.listeners": "1=[::]:9101,2=[::]:9102"}
    config = load_gateway_config(_file(tmp_path, log__dirs=None, **listeners))

    assert config.host.log_dirs == ()
    assert config.gateway.node_listeners[2] == HostPort(host="::", port=9102)


@pytest.mark.parametrize("key", sorted(REQUIRED.keys() - {"log.dirs"}))
def test_load_gateway_config_when_required_key_missing_then_names_it(
    tmp_path: Path, key: str
) -> None:
    path = _file(tmp_path, **{"log.dirs": None, key: None})

    with pytest.raises(InvalidConfigError, match=rf"a setting is missing \(.*key={key}\)"):
        load_gateway_config(path)


def test_load_gateway_config_when_next_to_a_broker_then_there_is_no_map_of_endpoints(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path, **{"gateway.node.listeners": "1=[::]:9101"})

    with pytest.raises(InvalidConfigError, match=r"whole cluster.*key=gateway\.node\.listeners"):
        load_gateway_config(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bootstrap.servers", "a"),
        ("bootstrap.servers", "a:0"),
        ("bootstrap.servers", "a:65536"),
        ("bootstrap.servers", " , "),
        ("log.dirs", ","),
        ("log.dirs", ""),
        ("state.dir", ""),
        ("metrics.listener", "9400"),
        ("rsm.config.storage.backend", "tape"),
        ("rsm.config.key.prefix", "/a"),
        ("rsm.config.key.prefix", "a/../b"),
        ("remote.copy.verify", "always"),
        ("remote.delete.max.attempts", "0"),
        ("remote.copy.attempt.timeout.ms", "-1"),
        ("remote.local.trim.min.age.ms", "1w"),
        ("rlmm.config.remote.log.metadata.topic.name", "a/b"),
        ("logging.level", "LOUD"),
    ],
)
def test_load_config_when_value_is_wrong_then_names_line_key_found_and_expected(
    tmp_path: Path, key: str, value: str
) -> None:
    path = _file(tmp_path, **{key: value})
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if key in text)

    with pytest.raises(InvalidConfigError) as raised:
        load_config(path)

    assert raised.value.context["file"] == str(path)
    assert raised.value.context["line"] == line
    assert raised.value.context["key"] == key
    assert raised.value.context["found"] == repr(value.strip())
    assert raised.value.context["expected"]


def test_load_config_when_key_is_unknown_then_names_the_nearest(tmp_path: Path) -> None:
    path = _file(tmp_path, **{"remote.log.manager.task.intervall.ms": "1"})

    with pytest.raises(InvalidConfigError) as raised:
        load_config(path)

    assert raised.value.context["did_you_mean"] == "remote.log.manager.task.interval.ms"


def test_load_config_when_a_write_may_not_take_as_long_as_one_attempt_then_refuses(
    tmp_path: Path,
) -> None:
    prefix = "rlmm.config.remote.log.metadata.producer"
    given = {f"{prefix}.request.timeout.ms": "6000", f"{prefix}.delivery.timeout.ms": "5999"}

    with pytest.raises(InvalidConfigError, match=r"request\.timeout\.ms=6000") as raised:
        load_config(_file(tmp_path, **given))

    assert raised.value.context["key"] == f"{prefix}.delivery.timeout.ms"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("clientsasl.password", "client.sasl.password"),
        ("sasl.password", "client.sasl.password"),
        ("client,ssl.ca.location", "client.ssl.ca.location"),
        ("gateway.ssl.keypassword", "gateway.ssl.key.password"),
    ],
)
def test_load_config_when_a_client_key_is_misspelled_then_names_that_client_key(
    tmp_path: Path, key: str, meant: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        load_config(_file(tmp_path, **{key: "1"}))

    assert raised.value.context["did_you_mean"] == meant


def test_load_config_when_the_client_suggests_a_key_then_it_has_the_prefix(tmp_path: Path) -> None:
    def refuse(_: Mapping[str, str]) -> None:
        raise InvalidConfigError("no such key", key="sasl.pasword", did_you_mean="sasl.password")

    with pytest.raises(InvalidConfigError) as raised:
        load_config(_file(tmp_path, **{"client.sasl.pasword": "1"}), refuse)

    assert raised.value.context["key"] == "client.sasl.pasword"
    assert raised.value.context["did_you_mean"] == "client.sasl.password"


def test_load_config_when_no_known_key_is_close_then_suggests_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        load_config(_file(tmp_path, **{"zookeeper.connect": "1"}))

    assert "did_you_mean" not in raised.value.context


@given(key=st.sampled_from(known_keys()[2:]), position=st.integers(0, 100))
def test_load_config_when_a_letter_of_a_key_is_lost_then_names_that_key(
    tmp_path_factory: pytest.TempPathFactory, key: str, position: int
) -> None:
    at = position % len(key)
    path = _file(tmp_path_factory.mktemp("lost"), **{key[:at] + key[at + 1 :]: "1"})

    with pytest.raises(InvalidConfigError, match=rf"did_you_mean={key}\)"):
        load_config(path)


def test_load_config_when_client_keys_given_then_passes_them_and_hides_secrets(
    tmp_path: Path,
) -> None:
    path = _file(
        tmp_path,
        **{"client.security.protocol": "SASL_SSL", "client.sasl.password": "hush-hush"},
    )

    config = load_config(path)

    assert config.cluster.client.librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "hush-hush",
    }
    assert "hush" not in repr(config)


@pytest.mark.parametrize("key", ["bootstrap.servers", "enable.idempotence", "acks", "group.id"])
def test_load_config_when_client_key_is_reserved_then_refuses(tmp_path: Path, key: str) -> None:
    path = _file(tmp_path, **{f"client.{key}": "x"})

    with pytest.raises(InvalidConfigError, match=f"key=client.{key}"):
        load_config(path)


def test_load_config_when_the_client_refuses_a_key_then_names_its_line(tmp_path: Path) -> None:
    path = _file(tmp_path, **{"client.nonsense": "1"})

    def refuse(client: Mapping[str, str]) -> None:
        raise InvalidConfigError("not taken", key=next(iter(client)), reason="none such")

    with pytest.raises(InvalidConfigError) as raised:
        load_config(path, refuse)

    expected = {"file": str(path), "line": 6, "key": "client.nonsense", "reason": "none such"}
    assert raised.value.context == expected


def test_load_config_when_file_is_absent_then_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="No such file"):
        load_config(tmp_path / "absent")


def test_load_config_when_an_editor_wrote_a_byte_order_mark_then_it_is_ignored(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path)
    lines = path.read_text(encoding="utf-8").partition("\n")[2]  # a key must be the first line
    path.write_text(lines, encoding="utf-8-sig")

    assert load_config(path).host.state_dir == Path("/var/rlm")


def test_load_config_when_escape_is_malformed_then_refuses(tmp_path: Path) -> None:
    path = _file(tmp_path, **{"rsm.config.key.prefix": "\\u12"})

    with pytest.raises(InvalidConfigError, match="malformed escape"):
        load_config(path)


def test_load_command_config_when_no_store_given_then_only_reading_it_fails(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path, **dict.fromkeys([*REQUIRED][1:]))

    config = load_command_config(path)

    assert config.storage is None
    with pytest.raises(InvalidConfigError, match="a setting of the store is missing") as raised:
        config.required_storage()
    assert raised.value.context["file"] == str(path)
    assert raised.value.context["key"] == "rsm.config.storage.filesystem.root"


def test_client_command_config_when_keys_have_no_prefix_then_are_the_clients(
    tmp_path: Path,
) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nrlmm.config.remote.log.metadata.topic.name=m\n")

    config = client_command_config("b:1", path)

    assert config.cluster.bootstrap_text == "b:1"
    assert config.cluster.client.librdkafka() == {"security.protocol": "SSL"}
    assert config.metadata.topic_name == "m"
