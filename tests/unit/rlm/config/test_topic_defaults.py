"""What the configuration file gives topics: the last policy level."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.load import Config, load_command_config, load_config
from rlm.worker.file_defaults import (
    file_defaults,
    read_registered,
    registered_defaults,
)
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rsm.segment.errors import InvalidConfigError

REQUIRED = {
    "bootstrap.servers": "a:9092",
    "log.dirs": "/var/kafka",
    "state.dir": "/var/rlm",
    "rsm.config.storage.filesystem.root": "/store",
}
EVERY = {
    "log.retention.ms": "604800000",
    "log.retention.bytes": "-1",
    "log.local.retention.ms": "3600000",
    "log.local.retention.bytes": "-2",
    "log.remote.copy.lag.ms": "60000",
    "log.remote.copy.lag.bytes": "-1",
    "log.remote.copy.lag.since": "roll",
    "remote.outage.policy": "shed",
}
VALUES = {
    PolicySetting.RETENTION_MS: 604_800_000,
    PolicySetting.RETENTION_BYTES: -1,
    PolicySetting.LOCAL_RETENTION_MS: 3_600_000,
    PolicySetting.LOCAL_RETENTION_BYTES: -2,
    PolicySetting.COPY_LAG_MS: 60_000,
    PolicySetting.COPY_LAG_BYTES: -1,
    PolicySetting.COPY_LAG_SINCE: CopyLagSince.ROLL,
    PolicySetting.OUTAGE_POLICY: OutagePolicy.SHED_OLDEST,
}


def written(directory: Path, **changes: str) -> Path:
    path = directory / "rlm.properties"
    entries = {**REQUIRED, **changes}
    path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    return path


def loaded(directory: Path, **changes: str) -> Config:
    return load_config(written(directory, **changes))


def test_defaults_when_the_file_gives_none_then_topics_get_none(tmp_path: Path) -> None:
    config = loaded(tmp_path)

    found = file_defaults(config)
    assert found.values == {}


def test_defaults_when_the_file_gives_all_then_managers_and_commands_have_them(
    tmp_path: Path,
) -> None:
    config = loaded(tmp_path, **EVERY)
    command = load_command_config(written(tmp_path, **EVERY))

    found = file_defaults(config)
    assert found.values == VALUES
    assert command.topic_defaults == config.topic_defaults


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.retention.ms", "-2"),
        ("log.retention.bytes", "7d"),
        ("log.local.retention.ms", "-3"),
        ("log.local.retention.bytes", ""),
        ("log.remote.copy.lag.ms", "-2"),
        ("log.remote.copy.lag.bytes", "9223372036854775808"),
        ("log.remote.copy.lag.since", "close"),
        ("remote.outage.policy", "drop"),
    ],
)
def test_default_when_it_cannot_be_then_is_refused_with_its_key(
    tmp_path: Path, key: str, value: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        loaded(tmp_path, **{key: value})

    assert refused.value.context["key"] == key


@pytest.mark.parametrize(
    ("changes", "key", "expected"),
    [
        (
            {"log.local.retention.ms": "604800001"},
            "log.local.retention.ms",
            "at most log.retention.ms=604800000",
        ),
        (
            {"log.local.retention.ms": "-1", "log.remote.copy.lag.ms": "0"},
            "log.local.retention.ms",
            "at most log.retention.ms=604800000",
        ),
        (
            {"log.retention.bytes": "10", "log.local.retention.bytes": "11"},
            "log.local.retention.bytes",
            "at most log.retention.bytes=10",
        ),
        (
            {"log.remote.copy.lag.ms": "3600001"},
            "log.remote.copy.lag.ms",
            "at most log.local.retention.ms=3600000",
        ),
        (
            {"log.local.retention.ms": "-2", "log.remote.copy.lag.ms": "604800000"},
            "log.remote.copy.lag.ms",
            "below log.retention.ms=604800000",
        ),
    ],
)
def test_defaults_when_they_contradict_each_other_then_are_refused_with_the_values(
    tmp_path: Path, changes: dict[str, str], key: str, expected: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        loaded(tmp_path, **{**EVERY, **changes})

    assert (refused.value.context["key"], refused.value.context["expected"]) == (key, expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"log.local.retention.ms": "604800000", "log.remote.copy.lag.ms": "604799999"},
        {"log.retention.ms": "-1", "log.local.retention.ms": "-1"},
        {"log.remote.copy.lag.ms": "3600000"},
        {"log.retention.ms": "0", "log.local.retention.ms": "-2", "log.remote.copy.lag.ms": "0"},
    ],
)
def test_defaults_when_they_are_at_their_limits_then_are_accepted(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    loaded(tmp_path, **{**EVERY, **changes})


def test_registered_defaults_when_the_file_gives_all_then_each_key_with_its_text(
    tmp_path: Path,
) -> None:
    registered = registered_defaults(loaded(tmp_path, **EVERY))

    assert {each.key: each.value for each in registered} == {
        **EVERY,
        "remote.local.trim.deletion.lag.ms": "0",
        "offload.mode": "segment",
        "max.size.per.offload.segment.bytes": "1073741824",
        "max.offload.segment.rollover.time.ms": "600000",
        "offload.stream.buffer.bytes": "268435456",
        "rsm.config.layout": "raw",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        EVERY,
        {
            "offload.mode": "stream",
            "offload.stream.buffer.bytes": "64MiB",
            "max.size.per.offload.segment.bytes": "8MiB",
            "max.offload.segment.rollover.time.ms": "5m",
            "remote.local.trim.deletion.lag.ms": "4h",
            "rsm.config.layout": "block_v2,any.module:Layout,raw",
        },
        {"remote.log.storage.manager.class.name": "any.module:Manager"},
    ],
)
def test_registered_defaults_when_read_again_then_the_same_as_in_the_file(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    config = loaded(tmp_path, **changes)

    assert read_registered(registered_defaults(config)) == file_defaults(config)


def test_registered_defaults_when_the_file_gives_none_then_each_key_without_a_value(
    tmp_path: Path,
) -> None:
    found = {each.key: each.value for each in registered_defaults(loaded(tmp_path))}

    assert {key: found[key] for key in EVERY} == dict.fromkeys(EVERY)
