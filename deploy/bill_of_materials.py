"""Adds components to a bill of materials (CycloneDX, JSON)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

Component = Mapping[str, object]


def library(purl: str, name: str, version: str, **more: object) -> Component:
    """Return the component of a library, with its fields in alphabetical order."""
    fields = {"name": name, "purl": purl, "type": "library", "version": version, **more}
    return {"bom-ref": purl, **dict(sorted(fields.items()))}


def add_components(bill: Path, components: Sequence[Component]) -> None:
    """Append components to a bill of materials, in place."""
    document = json.loads(bill.read_text())
    document["components"] += components
    document["dependencies"] += [{"ref": each["bom-ref"]} for each in components]
    bill.write_text(json.dumps(document, indent=2) + "\n")
