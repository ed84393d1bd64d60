"""Adds the Debian packages of an image to its bill of materials (CycloneDX, JSON).

    deploy/stack.sh packages rlm | python -m deploy.debian_components BILL

Reads dpkg's status file from standard input: a paragraph of fields (deb-control(5)) per package.
"""

from __future__ import annotations

import argparse
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path
from urllib.parse import quote

from deploy.bill_of_materials import Component, add_components, library

_INSTALLED = "installed"


def debian_components(status: str) -> list[Component]:
    """Return the installed packages, ordered by name. Raises ValueError if there are none."""
    paragraphs = map(Parser().parsestr, status.strip().split("\n\n"))
    components = [_component(each) for each in paragraphs if _is_installed(each)]
    if not components:
        raise ValueError("dpkg's status contains no installed package")
    return sorted(components, key=lambda each: str(each["bom-ref"]))


def _is_installed(package: Message) -> bool:
    """Return whether dpkg lists the package as installed; dpkg also lists removed packages."""
    return package.get("Status", "").split()[2:] == [_INSTALLED]


def _component(package: Message) -> Component:
    name, version = package["Package"], package["Version"]
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={package['Architecture']}"
    return library(purl, name, version, description=package["Description"].partition("\n")[0])


def _main() -> int:
    parser = argparse.ArgumentParser(
        description="Add an image's Debian packages to its bill of materials."
    )
    parser.add_argument("bill", type=Path, help="file of the bill of materials, changed in place")
    options = parser.parse_args()
    try:
        add_components(options.bill, debian_components(sys.stdin.read()))
    except ValueError as error:
        sys.stderr.write(f"cannot describe the Debian packages: {error}. Build the image again.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
