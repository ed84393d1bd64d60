"""Where a run gets its services from, and the names of their images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.services.containers.images import KAFKA, STORE, default_image, image
from tests.services.provider import PROCESSES, provider_named


@pytest.mark.parametrize("name", [None, PROCESSES])
def test_provider_when_no_engine_answers_then_starts_processes(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    assert provider_named(name).name == PROCESSES


@pytest.mark.parametrize("variable", [KAFKA, STORE])
def test_image_when_the_environment_names_none_then_is_that_of_the_stack_by_an_exact_tag(
    variable: str,
) -> None:
    assert re.fullmatch(r"docker\.io/\w+/\w+:v?\d+\.\d+\.\d+", image(variable, {variable: ""}))


def test_image_when_the_environment_names_one_then_is_that_one() -> None:
    mirrored = default_image(KAFKA).replace("docker.io", "registry.example")

    assert image(KAFKA, {KAFKA: mirrored}) == mirrored
