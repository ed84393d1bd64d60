"""The provider of a run's services, and the names of their images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.services.containers.images import (
    AZURITE,
    FAKE_GCS,
    HADOOP,
    KAFKA,
    STORE,
    default_image,
    image,
)
from tests.services.provider import PROCESSES, provider_named

_CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [None, PROCESSES])
def test_provider_when_no_engine_answers_then_starts_processes(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    assert provider_named(name).name == PROCESSES


@pytest.mark.parametrize("variable", [KAFKA, STORE, AZURITE, FAKE_GCS, HADOOP])
def test_image_when_the_environment_names_none_then_has_an_exact_tag(
    variable: str,
) -> None:
    official = r"(docker\.io|mcr\.microsoft\.com)/[\w-]+/[\w-]+:v?\d+\.\d+\.\d+"

    assert re.fullmatch(official, image(variable, {variable: ""}))


@pytest.mark.parametrize(
    ("variable", "file", "pattern"),
    [
        (KAFKA, "tests/services/pom.xml", "<kafka.version>(.+)</"),
        (STORE, "Makefile", "(?m)^VERSITYGW_VERSION = (.+)$"),
        (AZURITE, "Makefile", "(?m)^AZURITE_VERSION = (.+)$"),
        (FAKE_GCS, "Makefile", "(?m)^FAKE_GCS_VERSION = v(.+)$"),
        (HADOOP, "tests/services/hadoop/pom.xml", "<hadoop.version>(.+)</"),
    ],
)
def test_image_when_it_is_the_default_then_has_the_version_of_the_process(
    variable: str, file: str, pattern: str
) -> None:
    (version,) = re.findall(pattern, (_CHECKOUT / file).read_text())

    assert default_image(variable).rpartition(":")[2] == version


def test_image_when_the_environment_names_one_then_is_that_one() -> None:
    mirrored = default_image(KAFKA).replace("docker.io", "registry.example")

    assert image(KAFKA, {KAFKA: mirrored}) == mirrored
