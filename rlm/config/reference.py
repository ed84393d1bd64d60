"""Makes docs/config.md: `python -m rlm.config.reference > docs/config.md`."""

from __future__ import annotations

import sys
from enum import Enum
from typing import get_args

from pydantic.fields import FieldInfo

from rlm.config.client_properties import ClientProperties
from rlm.config.sections import SECTIONS
from rsm.config.choices import GivenSettings
from rsm.config.section import Section

_HEAD = """# Configuration

A Java `.properties` file in UTF-8, given to every command as `--config FILE`. A key that is not
listed here is an error. The last of equal keys holds. This page is made by `make docs`.
"""


def render() -> str:
    """Render the whole page."""
    return "\n".join([_HEAD, *(_render_section(section) for section in SECTIONS)])


def _render_section(section: type[Section]) -> str:
    title = (section.__doc__ or "").rstrip(".")
    rows = [_render_row(field) for field in section.model_fields.values()]
    return "\n".join([f"## {title}", "", "| key | default | meaning |", "|---|---|---|", *rows, ""])


def _render_row(field: FieldInfo) -> str:
    meaning = f"{field.description}{_valid_values(field)}"
    return f"| `{field.validation_alias}` | {_default_text(field)} | {meaning} |"


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default: object = field.default
    if (
        default is None
        or default in ("", {}, ())
        or isinstance(default, (ClientProperties, GivenSettings))
    ):
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`{','.join(map(_text, default))}`"
    return f"`{_text(default)}`"


def _text(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _valid_values(field: FieldInfo) -> str:
    if isinstance(field.annotation, type) and issubclass(field.annotation, Enum):
        values = [member.value for member in field.annotation]
    else:
        values = [value for value in get_args(field.annotation) if isinstance(value, str)]
    return f" One of {', '.join(f'`{value}`' for value in values)}." if values else ""


if __name__ == "__main__":
    sys.stdout.write(render())
