from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.importance import IMPORTANCES
from rlm.config.reference import render
from rlm.config.sections import SECTIONS, known_keys
from rsm.config.section import keys_of

CHECKOUT = Path(__file__).resolve().parents[4]


def test_config_page_when_made_again_then_equals_the_committed() -> None:
    assert (CHECKOUT / "docs" / "config.md").read_text(encoding="utf-8") == render()


def test_config_page_when_made_then_has_a_heading_with_an_anchor_for_every_key() -> None:
    lines = render().splitlines()

    headings = [f'### <a id="{key}"></a>`{key}`' for key in known_keys() if "<" not in key]
    assert [heading for heading in headings if lines.count(heading) != 1] == []


@pytest.mark.parametrize(
    ("key", "facts"),
    [
        ("state.dir", "path |  |  | required | yes | high"),
        (
            "remote.log.manager.task.interval.ms",
            "int | ms | at least 1 | `30000` (`30s`) | yes | medium",
        ),
        (
            "rsm.config.storage.s3.upload.memory.bytes",
            "long | bytes | at least 0 | `201326592` (`192MiB`) | yes | medium",
        ),
        (
            "remote.log.manager.copy.max.bytes.per.second",
            "long | bytes per second | at least 1 | unlimited | yes | medium",
        ),
        ("log.local.retention.ms", "long | ms | at least -2 | none | yes | high"),
        ("remote.outage.policy", "enum |  | `hold`, `shed` | none | yes | high"),
        ("log.dirs", "list |  |  | none | yes | high"),
        (
            "rsm.config.storage.filesystem.file.mode",
            "string |  |  | none | yes | medium",
        ),
        ("rsm.config.storage.faulty.fail.share", "double |  | 0 to 1 | `0.0` | yes | low"),
        ("gateway.ssl.key.password", "password |  |  | none | yes | medium"),
        (
            "gateway.ssl.keystore.location",
            "path |  |  | none | only for another path | high",
        ),
        (
            "logging.level",
            (
                "enum |  | `DEBUG`, `INFO`, `WARNING`, `ERROR` | `INFO` "
                "| no: [SIGHUP](operations.md#log-level-at-run-time) | medium"
            ),
        ),
        (
            "remote.log.metadata.manager.class.name",
            "enum or class |  | `topic` | `topic` | yes | medium",
        ),
    ],
)
def test_config_page_when_made_then_each_key_has_its_facts(key: str, facts: str) -> None:
    _, _, after = render().partition(f'### <a id="{key}"></a>')

    assert f"| {facts} |" in after.partition("\n### ")[0].splitlines()


def test_importances_when_compared_with_the_keys_then_each_key_has_one() -> None:
    keys = [key for section in SECTIONS for key in keys_of(section)]

    assert sorted(IMPORTANCES) == sorted(keys)
