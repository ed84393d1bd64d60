"""Pages name the versions of Kafka that tests run on, and claim no other."""

from __future__ import annotations

import re

from tests.architecture.tree import CHECKOUT

_POM = "tests/services/pom.xml"
_VERSION = r"\d+\.\d+\.\d+"


def test_readme_when_it_names_versions_of_kafka_then_those_that_are_tested() -> None:
    page = (CHECKOUT / "README.md").read_text()
    (row,) = re.findall(r"^\| Kafka \| (.*)$", page, re.MULTILINE)

    assert set(re.findall(_VERSION, row)) == _tested()


def test_page_about_tests_when_it_names_versions_of_kafka_then_all_that_are_tested() -> None:
    page = (CHECKOUT / "docs" / "testing.md").read_text()
    rows = re.findall(rf"^\| ({_VERSION})\b.*\| (?:ZooKeeper|KRaft) \|$", page, re.MULTILINE)

    assert set(rows) == _tested()


def _tested() -> set[str]:
    found = re.findall(r"<kafka\.(?:older\.)?versions?>(.*)</", (CHECKOUT / _POM).read_text())
    return set(" ".join(found).split())
