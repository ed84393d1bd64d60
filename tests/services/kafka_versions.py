"""The versions of Kafka that `rlm` is tested on, for tests that run on each of them.

tests/services/pom.xml names them; KAFKA_VERSIONS in the environment selects others. The newest one
is in build/kafka, because all tests use it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.services.kafka_runtime import USUAL, KafkaRelease
from tests.services.service import BUILD, Needs

_POM = Path(__file__).with_name("pom.xml").read_text()
# The first one whose KRaft mode is ready for production.
_FIRST_WITHOUT_ZOOKEEPER = (3, 3)


def _property(name: str) -> str:
    found = re.search(f"<{re.escape(name)}>(.*)</", _POM)
    assert found is not None, name
    return found[1]


NEWEST_VERSION = _property("kafka.version")
_DEFAULT = f"{_property('kafka.older.versions')} {NEWEST_VERSION}"
VERSIONS = tuple((os.environ.get("KAFKA_VERSIONS") or _DEFAULT).split())


def is_28(version: str) -> bool:
    """Return whether a version belongs to 2.8, the oldest line that `rlm` supports."""
    return version.startswith("2.8.")


def release_of(version: str) -> KafkaRelease:
    """Return where make installs a version, and whether it needs ZooKeeper."""
    if version == NEWEST_VERSION:
        return USUAL
    major, minor = (int(part) for part in version.split(".")[:2])
    return KafkaRelease(
        home=BUILD / "kafka-versions" / version,
        needs_zookeeper=(major, minor) < _FIRST_WITHOUT_ZOOKEEPER,
    )


NEEDS = Needs(
    programs=("java",),
    installed=tuple(path for each in VERSIONS for path in release_of(each).needs.installed),
)
