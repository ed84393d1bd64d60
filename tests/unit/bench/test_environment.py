from __future__ import annotations

import re

import pytest

from bench.environment import current_environment, java_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', "17.0.15"),
        ('java version "1.8.0_401"', "1.8.0_401"),
        ("", "unknown"),
    ],
)
def test_java_version_when_read_from_its_output_then_the_quoted_one(
    text: str, version: str
) -> None:
    assert java_version(text) == version


def test_environment_when_described_then_every_part_has_a_value() -> None:
    environment = current_environment()

    assert re.fullmatch(r"\d{4}-\d\d-\d\d", environment.date)
    assert re.fullmatch(r"[0-9a-f]{40}\+?|unknown", environment.commit)
    assert environment.machine.processors >= 1
    assert environment.machine.memory_mib > 0
    assert environment.interpreter.additions_s > 0
    assert environment.interpreter.version.startswith("CPython 3.")
