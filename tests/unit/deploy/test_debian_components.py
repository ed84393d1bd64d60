"""A bill of materials gets the installed Debian packages of an image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.bill_of_materials import add_components
from deploy.debian_components import debian_components

_STATUS = """\
Package: zlib1g
Status: install ok installed
Architecture: amd64
Version: 1:1.2.13.dfsg-1
Description: compression library - runtime
 It reads and writes gzip files.

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0
Description: only its settings are left

Package: libstdc++6
Status: install ok installed
Architecture: amd64
Version: 12.2.0-14
Description: GNU Standard C++ Library v3
"""


def test_components_when_packages_are_installed_then_have_the_purl_of_each() -> None:
    components = debian_components(_STATUS)

    assert [each["purl"] for each in components] == [
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64",
        "pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64",
    ]
    assert components[1]["description"] == "compression library - runtime"


def test_bill_when_packages_are_added_then_is_valid(tmp_path: Path) -> None:
    bill = tmp_path / "image.cdx.json"
    own = {"bom-ref": "boto3", "name": "boto3", "type": "library"}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "components": [own],
        "dependencies": [{"ref": "boto3"}],
    }
    bill.write_text(json.dumps(document))

    add_components(bill, debian_components(_STATUS))

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text()) is None
    names = [each["name"] for each in json.loads(bill.read_text())["components"]]
    assert names == ["boto3", "libstdc++6", "zlib1g"]


@pytest.mark.parametrize("status", ["", "Package: removed\nStatus: deinstall ok config-files\n"])
def test_components_when_nothing_is_installed_then_raises(status: str) -> None:
    with pytest.raises(ValueError, match="contains no installed package"):
        debian_components(status)
