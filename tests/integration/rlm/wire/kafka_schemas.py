"""Reads the message schemas of Kafka's own client from its jar."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_JARS = Path(__file__).resolve().parents[4] / "build" / "kafka" / "jars"
_FOLDER = "common/message/"

Schema = dict[str, Any]


def schema(name: str) -> Schema:
    """Return one schema, such as "FetchRequest"."""
    with _clients_jar() as archive:
        return _parsed(archive, f"{_FOLDER}{name}.json")


def schemas(kind: str) -> Iterator[Schema]:
    """Yield all schemas of a kind, "Request" or "Response"."""
    with _clients_jar() as archive:
        for name in archive.namelist():
            if name.startswith(_FOLDER) and name.endswith(f"{kind}.json"):
                yield _parsed(archive, name)


def _clients_jar() -> zipfile.ZipFile:
    (jar,) = _JARS.glob("kafka-clients-[0-9]*.jar")
    return zipfile.ZipFile(jar)


def _parsed(archive: zipfile.ZipFile, name: str) -> Schema:
    text = archive.read(name).decode()
    parsed: Schema = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return parsed
