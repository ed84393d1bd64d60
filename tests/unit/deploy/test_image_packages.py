"""What `make wheels` and `make sbom` cover: the packages of both images."""

from __future__ import annotations

import json
import os
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from deploy.bill_of_materials import add_components
from deploy.java_components import jar_components

_CHECKOUT = Path(__file__).resolve().parents[3]
_STAMPS = ("product", "dev", "jars", "spark-jars")
_PINNED = re.compile(r"^([a-z0-9-]+==\S+)", re.MULTILINE)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <properties><spark.version>4.2.0</spark.version></properties>
  <dependencies>
    <dependency><groupId>org.example</groupId><artifactId>connector</artifactId>
      <version>${spark.version}</version></dependency>
    <dependency><groupId>org.example</groupId><artifactId>pool</artifactId>
      <version>2.1</version></dependency>
  </dependencies>
</project>
"""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """Two jars, and `connector.xml` next to their directory, which names them."""
    (tmp_path / "connector.xml").write_text(_POM)
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("connector-4.2.0.jar", "pool-2.1.jar"):
        (jars / name).write_text(name)
    return jars


def _make(directory: Path, *arguments: str, python: str) -> subprocess.CompletedProcess[str]:
    """Run make with this Python, and with all packages installed already."""
    stamps, programs = directory / "stamps", directory / "bin"
    for each in (stamps, programs):
        each.mkdir()
    for name in _STAMPS:
        (stamps / name).touch()
    (programs / "python").write_text(f"#!/bin/sh\n{python}\n")
    (programs / "python").chmod(0o755)
    variables = (f"STAMPS={stamps}", f"BIN={programs}", f"WHEELS={directory / 'wheels'}")
    return subprocess.run(
        ["make", *arguments, *variables],
        cwd=_CHECKOUT,
        env={name: text for name, text in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )


def _locks_of_images() -> set[str]:
    """Return the lock files from which the images are built."""
    return set(re.findall(r"requirements\S*\.txt", (_CHECKOUT / "Dockerfile").read_text()))


def _packages(*locks: str | Path) -> set[str]:
    texts = [(_CHECKOUT / each).read_text() for each in locks]
    return {package for text in texts for package in _PINNED.findall(text)}


def test_wheels_when_run_then_looks_for_every_package_of_the_images_but_spark(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    _make(tmp_path, "wheels", python=f'mkdir -p "{tmp_path}/wheels/x86_64"; echo "$*" >>"{log}"')

    calls = log.read_text().splitlines()
    for platform in ("x86_64", "aarch64"):
        looked_up = [each.split()[-1] for each in calls if f"manylinux_2_28_{platform}" in each]
        missing = _packages(*_locks_of_images()) - _packages(*looked_up)
        assert [each.split("==")[0] for each in missing] == ["pyspark"]
    assert all("--only-binary=:all:" in each and "--require-hashes" in each for each in calls)


def test_wheels_when_a_package_of_spark_has_none_then_fails(tmp_path: Path) -> None:
    python = 'case "$*" in *aarch64*requirements-spark.txt) exit 1 ;; esac'

    assert _make(tmp_path, "wheels", python=python).returncode != 0


def test_lock_of_spark_when_compared_then_has_all_packages_of_the_first_image() -> None:
    """`make sbom` describes the second image by this lock and the lock of pyspark."""
    assert _packages("requirements-image.txt") <= _packages("requirements-spark.txt")


def test_components_when_the_jars_are_those_of_the_pom_then_added_to_the_bill(
    jars: Path, tmp_path: Path
) -> None:
    bill = tmp_path / "bill.json"
    bill.write_text('{"components": [{"name": "py4j"}], "dependencies": []}')

    add_components(bill, jar_components(tmp_path / "connector.xml", jars))

    document = json.loads(bill.read_text())
    _, connector, pool = document["components"]
    assert connector["purl"] == "pkg:maven/org.example/connector@4.2.0"
    assert connector["hashes"] == [
        {"alg": "SHA-256", "content": sha256(b"connector-4.2.0.jar").hexdigest()}
    ]
    assert pool["purl"] == "pkg:maven/org.example/pool@2.1"
    assert document["dependencies"] == [{"ref": connector["purl"]}, {"ref": pool["purl"]}]


@pytest.mark.parametrize("name", ["connector-4.1.0.jar", "other-1.jar"])
def test_components_when_the_directory_has_another_jar_then_refuses(
    jars: Path, tmp_path: Path, name: str
) -> None:
    (jars / name).touch()

    with pytest.raises(ValueError, match=name):
        jar_components(tmp_path / "connector.xml", jars)
