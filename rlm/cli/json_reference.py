"""Generate docs/json.md: `python -m rlm.cli.json_reference > docs/json.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from rlm.cli.host.processes import PROCESSES_DOCUMENT
from rlm.cli.reading.explain import EXPLAIN_DOCUMENT
from rlm.cli.reading.segment_lines import SEGMENTS_DOCUMENT
from rlm.cli.reading.status import STATUS_DOCUMENT
from rlm.cli.topics.describe import DESCRIBE_DOCUMENT
from rlm.cli.topics.leases import LEASES_DOCUMENT
from rlm.cli.topics.offload_status import OFFLOAD_STATUS_DOCUMENT
from rlm.cli.topics.policy_text import TOPICS_DOCUMENT
from rlm.cli.topics.retention import RETENTION_DOCUMENT
from rlm.rest.manager_api import MANAGER_ENDPOINTS
from rlm.status.json_shape import JsonField, JsonKind, JsonShape

COMMAND_DOCUMENTS: Mapping[str, JsonShape] = MappingProxyType(
    {
        "status": STATUS_DOCUMENT,
        "processes": PROCESSES_DOCUMENT,
        "topic list": TOPICS_DOCUMENT,
        "topic describe": DESCRIBE_DOCUMENT,
        "segments list": SEGMENTS_DOCUMENT,
        "explain": EXPLAIN_DOCUMENT,
        "offload-status": OFFLOAD_STATUS_DOCUMENT,
        "retention run": RETENTION_DOCUMENT,
        "leases list": LEASES_DOCUMENT,
        "leases release": LEASES_DOCUMENT,
    }
)
"""The document that each command prints with --json."""

UNDESCRIBED_COMMANDS = (
    "check",
    "config check",
    "config show",
    "dlq list",
    "dlq retry",
    "metadata audit-native",
    "metadata dump",
    "metadata tail",
    "offload",
    "plugins list",
    "read",
    "storage check",
    "topic resolve",
)
"""The commands with --json that this page does not describe yet."""

_HEAD = """# JSON

What commands print with `--json`, and what the [HTTP API](http.md) answers. Every field is always
there, and is null only where its type says so. A newer version may add fields: ignore those that
you do not know. Offsets after a range are exclusive: a range from 0 to 10 ends with offset 9.
`make docs` writes this page.

| output of | object |
|---|---|
"""


def render() -> str:
    """Return the whole page."""
    sources = (
        *((f"`rlm {name} --json`", each) for name, each in COMMAND_DOCUMENTS.items()),
        *((f"`{e.method} {e.path}`", e.body) for e in MANAGER_ENDPOINTS if e.body is not None),
    )
    shapes: dict[str, JsonShape] = {}
    for _, document in sources:
        for each in document.nested():
            if shapes.setdefault(each.name, each) != each:
                raise ValueError(f"two objects have one name: {each.name}")
    rows = (f"| {source} | {_link(document)} |" for source, document in sources)
    left = ", ".join(f"`{name}`" for name in UNDESCRIBED_COMMANDS)
    return "\n".join(
        (
            _HEAD + "\n".join(rows),
            "",
            f"Not described yet: {left}.",
            "",
            *map(_section, shapes.values()),
        )
    )


def _link(shape: JsonShape) -> str:
    return f"[{shape.name}](#{shape.name.lower()})"


def _section(shape: JsonShape) -> str:
    others = (f"| any other | | | {shape.others} |",) if shape.others else ()
    table = ("| field | type | unit | meaning |", "|---|---|---|---|", *_rows(shape), *others)
    return "\n\n".join((f"## {shape.name}", shape.meaning, "\n".join(table))) + "\n"


def _rows(shape: JsonShape) -> Iterator[str]:
    for name, each in shape.fields.items():
        unit = each.kind.unit if isinstance(each.kind, JsonKind) else ""
        yield f"| `{name}` | {_type(each)} | {unit} | {each.meaning} |"


def _type(field: JsonField) -> str:
    kind = field.kind.type_name if isinstance(field.kind, JsonKind) else _link(field.kind)
    listed = f"list of {kind}" if field.is_list else kind
    return f"{listed} or null" if field.is_nullable else listed


if __name__ == "__main__":
    sys.stdout.write(render())
