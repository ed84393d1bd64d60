"""Durations and sizes in the configuration file, and the errors for other text."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from rlm.config.load import Config, load_config
from rlm.config.sections import SECTIONS
from rsm.config.section import Section, keys_of
from rsm.config.value_form import ValueForm
from rsm.segment.errors import InvalidConfigError

AMOUNTS: list[tuple[type[Section], str, FieldInfo]] = [
    (section, name, field)
    for section in SECTIONS
    for name, field in section.model_fields.items()
    if ValueForm.of(name, field).unit.grammar is not None
]
SUFFIXES = (".ms", ".bytes", ".seconds", "chunk.size", "block.size", "cache.size", "per.second")


def _load(directory: Path, settings: dict[str, str]) -> Config:
    required = {
        "bootstrap.servers": "a:9092",
        "log.dirs": "/var/kafka",
        "state.dir": "/var/rlm",
        "rsm.config.storage.filesystem.root": "/mnt/store",
    }
    path = directory / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in {**required, **settings}.items()))
    return load_config(path)


@pytest.mark.parametrize(
    ("section", "name", "field"), AMOUNTS, ids=[str(each[2].validation_alias) for each in AMOUNTS]
)
def test_key_with_a_unit_when_given_as_duration_or_size_then_is_its_number(
    tmp_path: Path, section: type[Section], name: str, field: FieldInfo
) -> None:
    form = ValueForm.of(name, field)
    assert form.sample is not None

    config = _load(tmp_path, {str(field.validation_alias): form.unit.readable(form.sample)})

    (found,) = (
        getattr(part, name)
        for part in (getattr(config, each.name) for each in fields(config))
        if type(part) is section
    )
    assert found == form.sample


def test_keys_when_their_names_end_in_a_unit_then_accept_a_duration_or_size() -> None:
    keys = {key for section in SECTIONS for key in keys_of(section)}

    with_unit = {str(field.validation_alias) for _, _, field in AMOUNTS}
    counted = {key for key in keys if key.endswith(("requests.per.second", "segments.per.second"))}
    assert {key for key in keys if key.endswith(SUFFIXES)} - with_unit == counted


@pytest.mark.parametrize("key", ["log.local.retention.ms", "log.local.retention.bytes"])
@pytest.mark.parametrize("value", [-1, -2])
def test_retention_when_it_is_a_special_number_then_stays_it(
    tmp_path: Path, key: str, value: int
) -> None:
    defaults = _load(tmp_path, {key: str(value)}).topic_defaults

    assert value in {defaults.local_retention_ms, defaults.local_retention_bytes}


def test_client_settings_when_they_look_like_amounts_then_stay_text(tmp_path: Path) -> None:
    config = _load(tmp_path, {"client.linger.ms": "5s", "client.fetch.max.bytes": "1MiB"})

    assert config.cluster.client.plain == {"linger.ms": "5s", "fetch.max.bytes": "1MiB"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "remote.local.trim.min.age.ms",
            "1w",
            "a whole number of ms, at least 0, or a duration such as 15m",
        ),
        (
            "remote.log.manager.task.interval.ms",
            "30d",
            "a whole number of ms from 1 to 2147483647, or a duration such as 30s",
        ),
        (
            "log.retention.ms",
            "-1d",
            "a whole number of ms, at least -1, or a duration such as 7d",
        ),
        (
            "log.retention.bytes",
            "50 gigs",
            "a whole number of bytes, at least -1, or a size such as 50GiB",
        ),
        (
            "remote.log.manager.fetch.quota.window.size.seconds",
            "1500ms",
            "a whole number of seconds from 1 to 2147483647, or a duration such as 7d",
        ),
        (
            "remote.scrub.read.max.bytes.per.second",
            "fast",
            "a whole number of bytes per second, at least 1, or a size such as 10MiB",
        ),
        (
            "rsm.config.storage.gcs.resumable.upload.chunk.size",
            "262145",
            (
                "a whole number of bytes, at least 262144, a multiple of 262144, "
                "or a size such as 16MiB"
            ),
        ),
        ("gateway.workers", "many", "a whole number from 1 to 64"),
        ("remote.outage.disk.threshold.percent", "0", "a whole number of percent from 1 to 99"),
        ("rsm.config.storage.faulty.fail.share", "half", "a number from 0 to 1"),
        ("remote.retention.reassert", "maybe", "true or false"),
        ("remote.copy.verify", "always", "one of none, read"),
        ("remote.outage.policy", "wait", "one of hold, shed"),
        ("rsm.config.storage.s3.region", "", "a value that is not empty"),
        ("rsm.config.storage.hdfs.root", "cold", "an absolute path, which starts with '/'"),
    ],
)
def test_setting_when_its_value_is_wrong_then_the_error_says_what_is_expected(
    tmp_path: Path, key: str, value: str, expected: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        _load(tmp_path, {key: value})

    context = refused.value.context
    assert (context["key"], context["found"], context["expected"]) == (key, repr(value), expected)
