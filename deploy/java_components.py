"""Adds the jars of Spark's Kafka connector to a bill of materials (CycloneDX, JSON).

    python -m deploy.java_components BILL --pom spark_tools/connector.xml --jars build/spark-jars

Names and versions come from the POM with which the jars were fetched, and hashes from the jars. The
POM must name exactly the directory's jars, so that a stale directory is never described.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from deploy.bill_of_materials import Component, add_components, library

_MAVEN = "{http://maven.apache.org/POM/4.0.0}"


def jar_components(pom: Path, jars: Path) -> list[Component]:
    """Return the POM's dependencies. Raises ValueError if the directory's jars differ."""
    components = {
        f"{name}-{version}.jar": (group, name, version) for group, name, version in _of(pom)
    }
    found = {path.name for path in jars.glob("*.jar")}
    if found != components.keys():
        raise ValueError(
            f"{jars} and {pom} differ in these jars: {sorted(found ^ components.keys())}"
        )
    return [_component(*components[name], jars / name) for name in sorted(components)]


def _of(pom: Path) -> Iterator[tuple[str, str, str]]:
    project = ElementTree.parse(pom).getroot()  # noqa: S314 - a file of this checkout
    properties = {
        f"${{{each.tag.removeprefix(_MAVEN)}}}": each.text or ""
        for each in project.iterfind(f"{_MAVEN}properties/*")
    }
    for each in project.iterfind(f"{_MAVEN}dependencies/{_MAVEN}dependency"):
        group, name, version = (
            each.findtext(f"{_MAVEN}{part}", "") for part in ("groupId", "artifactId", "version")
        )
        yield group, name, properties.get(version, version)


def _component(group: str, name: str, version: str, jar: Path) -> Component:
    purl = f"pkg:maven/{group}/{name}@{version}"
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    hashes = [{"alg": "SHA-256", "content": digest}]
    return library(purl, name, version, group=group, hashes=hashes)


def _main() -> int:
    parser = argparse.ArgumentParser(description="Add the connector's jars to a bill of materials.")
    parser.add_argument("bill", type=Path, help="file of the bill of materials, changed in place")
    parser.add_argument("--pom", type=Path, required=True, help="POM that lists the jars")
    parser.add_argument("--jars", type=Path, required=True, help="directory of the jars")
    options = parser.parse_args()
    try:
        add_components(options.bill, jar_components(options.pom, options.jars))
    except ValueError as error:
        sys.stderr.write(
            f"cannot describe the jars: {error}. Remove the directory and run make again.\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
