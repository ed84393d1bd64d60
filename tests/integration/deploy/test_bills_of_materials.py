"""`make sbom`: valid bills of materials, and that of Spark's image has its Java parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.services.spark_jars import connector_jars

_CHECKOUT = Path(__file__).resolve().parents[3]


def test_sbom_when_made_then_valid_and_spark_image_has_spark_and_the_connector(
    tmp_path: Path,
) -> None:
    stamps = tmp_path / "stamps"
    stamps.mkdir()
    for name in ("product", "dev", "spark-jars"):
        (stamps / name).touch()
    variables = (f"BIN={Path(sys.executable).parent}", f"STAMPS={stamps}", f"SBOM={tmp_path}")

    subprocess.run(
        ["make", "sbom", *variables],
        cwd=_CHECKOUT,
        env={name: text for name, text in os.environ.items() if not name.startswith("MAKE")},
        check=True,
        timeout=200.0,
    )

    bills = {path.name.split(".")[0]: path.read_text() for path in tmp_path.glob("*.cdx.json")}
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert {name: validator.validate_str(text) for name, text in bills.items()} == dict.fromkeys(
        ("wheel", "image", "spark", "spark-image")
    )
    components = json.loads(bills["spark-image"])["components"]
    jars = {
        f"{each['name']}-{each['version']}.jar" for each in components if "maven" in each["purl"]
    }
    assert jars == {Path(each).name for each in connector_jars()}
    assert {"pyspark", "py4j", "boto3", "numba"} <= {each["name"] for each in components}
