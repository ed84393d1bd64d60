"""Generates docs/json.md: `python -m rlm.cli.json_reference > docs/json.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rlm.cli.events.dlq import DEAD_LETTERS_DOCUMENT
from rlm.cli.events.metadata_lines import METADATA_RECORD, NATIVE_FINDING
from rlm.cli.host.check import CHECK_DOCUMENT
from rlm.cli.host.config import CONFIG_CHECK_DOCUMENT, CONFIG_SHOW_DOCUMENT
from rlm.cli.host.processes import PROCESSES_DOCUMENT
from rlm.cli.policies.level_list import LEVELS_DOCUMENT
from rlm.cli.policies.level_text import CHANGES_DOCUMENT, LEVEL_DOCUMENT
from rlm.cli.reading.explain import EXPLAIN_DOCUMENT
from rlm.cli.reading.record_lines import RECORD
from rlm.cli.reading.status import STATUS_DOCUMENT
from rlm.cli.segments.deletion_lines import DELETION_DOCUMENT
from rlm.cli.segments.segment_lines import SEGMENTS_DOCUMENT
from rlm.cli.stores.plugins import PLUGINS_DOCUMENT
from rlm.cli.stores.storage import STORAGE_CHECK_DOCUMENT
from rlm.cli.topics.describe import DESCRIBE_DOCUMENT
from rlm.cli.topics.leases import LEASES_DOCUMENT
from rlm.cli.topics.lost_segment import LOST_SEGMENT
from rlm.cli.topics.offload import OFFLOAD_DOCUMENT, OFFLOAD_REQUEST_DOCUMENT
from rlm.cli.topics.offload_status import OFFLOAD_STATUS_DOCUMENT
from rlm.cli.topics.policy_text import TOPICS_DOCUMENT
from rlm.cli.topics.resolve import PARTITION_LOSSES
from rlm.cli.topics.retention import RETENTION_DOCUMENT
from rlm.rest.manager_api import MANAGER_ENDPOINTS
from rsm.program.json_shape import JsonShape, shape_link, shape_section

_ON_EACH_LINE = "on each line: "
_LIST = "list of "


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Represents a command's output: one object, or several as `form` describes."""

    shape: JsonShape
    form: str = ""


COMMAND_OUTPUTS: Mapping[str, CommandOutput] = MappingProxyType(
    {
        "status": CommandOutput(STATUS_DOCUMENT),
        "processes": CommandOutput(PROCESSES_DOCUMENT),
        "topic list": CommandOutput(TOPICS_DOCUMENT),
        "topic describe": CommandOutput(DESCRIBE_DOCUMENT),
        "topic resolve": CommandOutput(PARTITION_LOSSES, _LIST),
        "topic resolve --lost-segment": CommandOutput(
            LOST_SEGMENT, "for one segment the object, for several a list of "
        ),
        "policy set": CommandOutput(CHANGES_DOCUMENT),
        "policy list": CommandOutput(LEVELS_DOCUMENT),
        "policy describe": CommandOutput(LEVEL_DOCUMENT),
        "policy delete": CommandOutput(CHANGES_DOCUMENT),
        "apply": CommandOutput(CHANGES_DOCUMENT),
        "segments list": CommandOutput(SEGMENTS_DOCUMENT),
        "segments delete": CommandOutput(DELETION_DOCUMENT),
        "explain": CommandOutput(EXPLAIN_DOCUMENT),
        "read": CommandOutput(RECORD, _ON_EACH_LINE),
        "offload": CommandOutput(OFFLOAD_DOCUMENT),
        "offload --no-wait": CommandOutput(OFFLOAD_REQUEST_DOCUMENT),
        "offload-status": CommandOutput(OFFLOAD_STATUS_DOCUMENT),
        "retention run": CommandOutput(RETENTION_DOCUMENT),
        "leases list": CommandOutput(LEASES_DOCUMENT),
        "leases release": CommandOutput(LEASES_DOCUMENT),
        "dlq list": CommandOutput(DEAD_LETTERS_DOCUMENT),
        "dlq retry": CommandOutput(DEAD_LETTERS_DOCUMENT),
        "metadata dump": CommandOutput(METADATA_RECORD, _ON_EACH_LINE),
        "metadata tail": CommandOutput(METADATA_RECORD, _ON_EACH_LINE),
        "metadata audit-native": CommandOutput(NATIVE_FINDING, _ON_EACH_LINE),
        "storage check": CommandOutput(STORAGE_CHECK_DOCUMENT),
        "plugins list": CommandOutput(PLUGINS_DOCUMENT),
        "check": CommandOutput(CHECK_DOCUMENT),
        "config check": CommandOutput(CONFIG_CHECK_DOCUMENT),
        "config show": CommandOutput(CONFIG_SHOW_DOCUMENT),
    }
)
"""The --json output of each command, by the command with any option that changes the output."""

_HEAD = """# JSON

This page describes the output of commands with `--json`, and the responses of the
[HTTP API](http.md). Every field is always present unless its type says `optional`, and is null only
where its type says so. A newer version may add fields: ignore unknown fields. The end of a range of
offsets is exclusive: a range from 0 to 10 ends with offset 9. The [Spark jobs](spark-jobs.md#json)
have their own reports. `make docs` writes this page.

| output of | object |
|---|---|
"""


def render() -> str:
    """Return the whole page."""
    sources = (
        *((f"`rlm {name} --json`", each) for name, each in COMMAND_OUTPUTS.items()),
        *(
            (
                f"`{each.method} {each.path}`",
                CommandOutput(each.body, _LIST if each.is_list else ""),
            )
            for each in MANAGER_ENDPOINTS
            if each.body is not None
        ),
    )
    shapes: dict[str, JsonShape] = {}
    for _, output in sources:
        for each in output.shape.nested():
            if shapes.setdefault(each.name, each) != each:
                raise ValueError(f"cannot write the page: two objects have the name {each.name}")
    rows = (f"| {source} | {output.form}{shape_link(output.shape)} |" for source, output in sources)
    return "\n".join((_HEAD + "\n".join(rows), "", *map(shape_section, shapes.values())))


if __name__ == "__main__":
    sys.stdout.write(render())
