"""Makes docs/config.md: `python -m rlm.config.reference > docs/config.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from typing import get_args

from pydantic.fields import FieldInfo

from rlm.config.client_properties import ClientProperties
from rlm.config.sections import SECTIONS
from rsm.config.choices import GivenSettings
from rsm.config.section import Section

_HEAD = """# Configuration

A Java `.properties` file in UTF-8. Every command reads the file of `--config FILE`, else the file
that `RLM_CONFIG` names, else `/etc/rlm/rlm.properties`. A key that is not listed here is an error.
If a key occurs twice, the last value applies. `make docs` writes this page.

A change needs a restart: `rlm run` and `rlm gateway` read the file only when they start. Only
`logging.level` is read again on SIGHUP, by all processes of `rlm run` or `rlm gateway`. The PEM
files that it names are read again whenever they change. To add or remove such a key needs a
restart, too.
"""

_UNLIMITED = (2**31 - 1, 2**63 - 1)
_DURATIONS = ((86_400_000, "day"), (60_000, "minute"), (1_000, "s"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
# Of a field's name: the units of its amount, the unit of its number.
_UNITS = {"_ms": _DURATIONS, "_bytes": _SIZES, "bytes_per_second": _SIZES}
_UNIT_NAMES = {
    "_ms": "ms",
    "_bytes": "byte",
    "_seconds": "s",
    "bytes_per_second": "bytes/s",
    "_percent": "%",
    "read_percent_per_day": "%",
}


def render() -> str:
    """Render the whole page."""
    return "\n".join([_HEAD, *(_render_section(section) for section in SECTIONS)])


def _render_section(section: type[Section]) -> str:
    title = (section.__doc__ or "").rstrip(".")
    rows = [_render_row(name, field) for name, field in section.model_fields.items()]
    return "\n".join(
        [f"## {title}", "", "| key | default | range | meaning |", "|---|---|---|---|", *rows, ""]
    )


def _render_row(name: str, field: FieldInfo) -> str:
    meaning = f"{field.description}{_valid_values(field)}"
    default = _default_cell(name, field)
    return f"| `{field.validation_alias}` | {default} | {_range(name, field)} | {meaning} |"


def default_text(field: FieldInfo) -> str:
    """Return a field's default for people, without its unit."""
    return _default_name(field) or _value_text(field.default)


def _default_cell(name: str, field: FieldInfo) -> str:
    if word := _default_name(field):
        return word
    default: object = field.default
    has_amount = isinstance(default, int) and not isinstance(default, bool)
    amount = _amount(name, int(field.default)) if has_amount else ""
    text = f"`{_value_text(default)}`"
    return f"{text} ({amount})" if amount else text


def _default_name(field: FieldInfo) -> str:
    """Return the name of a default that has no spelling in the file; empty if it has one."""
    if field.is_required():
        return "required"
    default: object = field.default
    if (
        default is None
        or default in ("", {}, ())
        or isinstance(default, (ClientProperties, GivenSettings))
    ):
        return "none"
    is_number = isinstance(default, int) and not isinstance(default, bool)
    return "unlimited" if is_number and default in _UNLIMITED else ""


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_text, value)) if isinstance(value, tuple) else _text(value)


def _amount(name: str, value: int) -> str:
    """Return a duration or size in its largest whole unit; empty if the number itself says it."""
    units = next((units for suffix, units in _UNITS.items() if name.endswith(suffix)), ())
    for size, unit in units:
        if value >= size and value % size == 0:
            return f"{value // size} {_plural(unit) if value > size else unit}"
    return ""


def _plural(unit: str) -> str:
    return f"{unit}s" if unit in {"day", "minute", "byte"} else unit


def _range(name: str, field: FieldInfo) -> str:
    """Return the least and the greatest value of a number, with its unit."""
    limits = list(_limits(field))
    least = next((each.ge for each in limits if hasattr(each, "ge")), None)
    most = next((each.le for each in limits if hasattr(each, "le")), None)
    if least is None:
        return ""
    unit = next((unit for suffix, unit in _UNIT_NAMES.items() if name.endswith(suffix)), "")
    is_open = most is None or most in _UNLIMITED
    text = f"at least {least}" if is_open else f"{least} to {most}"
    return f"{text} {unit if is_open and least == 1 else _plural(unit)}".rstrip()


def _limits(field: FieldInfo) -> Iterator[object]:
    """Return the constraints of a field, and of its type if it may be None."""
    yield from field.metadata
    for choice in get_args(field.annotation):
        for each in getattr(choice, "__metadata__", ()):
            yield from each.metadata if isinstance(each, FieldInfo) else ()


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
