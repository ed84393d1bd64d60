"""Generates docs/config.md: `python -m rlm.config.reference > docs/config.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum

from pydantic.fields import FieldInfo

from rlm.config.client_properties import ClientProperties
from rlm.config.importance import IMPORTANCES, Importance
from rlm.config.sections import LOGGING_LEVEL_KEY, SECTIONS
from rlm.config.tls import (
    KEYSTORE_KEY,
    REST_KEYSTORE_KEY,
    REST_TRUSTSTORE_KEY,
    TRUSTSTORE_KEY,
    UPSTREAM_KEYSTORE_KEY,
)
from rsm.config.choices import GivenSettings
from rsm.config.section import Section
from rsm.config.value_form import INT_MAX, LONG_MAX, ValueForm

_HEAD = """# Configuration

The configuration is a Java `.properties` file in UTF-8. Commands read the file of
`--config FILE`, else the file that `RLM_CONFIG` names, else `/etc/rlm/rlm.properties`. A key that
is not listed here is an error. If a key occurs twice, the last value applies. `make docs` writes
this page.

The address `config.md#KEY` leads to a key. Each key has these attributes:

- **type**: as in Kafka's reference. An `int` is at most 2147483647, and a `long` is at most
  9223372036854775807. A `path` is a file or a directory of this host. An `enum` is one of the
  values of its range. A `class` is `package.module:Class`. The parts of a `list` are
  comma-separated.
- **unit**: the unit of a plain number. Settings in ms or seconds also accept a duration: `7d`,
  `12h`, `30m`, `90s`, `500ms`. Settings in bytes or bytes per second also accept a size: `50GiB`
  (powers of 1024) or `64MB` (powers of 1000). -1 and -2 have no unit. Values of `client.*` go to
  the Kafka client, which accepts no units.
- **range**: the permitted numbers or values.
- **restart**: whether a change needs a restart of `rlm run` or `rlm gateway` as a whole. They read
  the file when they start. A process that the supervisor restarts after a failure reads the file
  again, too. Commands read it each time.
- **importance**: `high` if most installations set the key, or if a wrong value can lose data;
  `medium` if operators tune the key to their load, hosts or network; otherwise `low`.

On SIGHUP, all processes of `rlm run` or `rlm gateway` read `logging.level` again. The gateway and
the manager's HTTP API read their PEM files again whenever these change. If you add or remove a key
that names a PEM file, restart them.
"""

_TABLE_HEAD = "| type | unit | range | default | restart | importance |\n|---|---|---|---|---|---|"

_RESTARTS = {
    LOGGING_LEVEL_KEY: "no: [SIGHUP](operations.md#log-level-at-run-time)",
    **dict.fromkeys(
        (KEYSTORE_KEY, TRUSTSTORE_KEY, UPSTREAM_KEYSTORE_KEY, REST_KEYSTORE_KEY),
        "only for another path",
    ),
    REST_TRUSTSTORE_KEY: "no: only commands read it",
}
"""Whether a change of a key needs a restart. Changes of all other keys do."""


def render() -> str:
    """Render the whole page."""
    return "\n".join([_HEAD, *_important_keys(), *map(_render_section, SECTIONS)])


def _important_keys() -> Iterator[str]:
    yield "## Keys of high importance\n"
    for section in SECTIONS:
        keys = [
            f"[`{key}`](#{_anchor(key)})"
            for key in (str(field.validation_alias) for field in section.model_fields.values())
            if IMPORTANCES[key] is Importance.HIGH
        ]
        if keys:
            yield f"- {_title(section)}: {', '.join(keys)}"
    yield ""


def _title(section: type[Section]) -> str:
    return (section.__doc__ or "").rstrip(".")


def _render_section(section: type[Section]) -> str:
    keys = (_render_key(name, field) for name, field in section.model_fields.items())
    return "\n".join([f"## {_title(section)}", "", *keys])


def _render_key(name: str, field: FieldInfo) -> str:
    key = str(field.validation_alias)
    form = ValueForm.of(name, field)
    cells = (
        form.type_name,
        form.unit.symbol,
        _range(form),
        _default_cell(form, field),
        _RESTARTS.get(key, "yes"),
        IMPORTANCES[key].value,
    )
    heading = f'### <a id="{_anchor(key)}"></a>`{key}`'
    return f"{heading}\n\n{field.description}\n\n{_TABLE_HEAD}\n| {' | '.join(cells)} |\n"


def _anchor(key: str) -> str:
    """Return the key, without a last part in angle brackets."""
    return key.partition(".<")[0]


def default_text(field: FieldInfo) -> str:
    """Return a field's default in a form for people, without its unit."""
    return _default_name(field) or _value_text(field.default)


def _default_cell(form: ValueForm, field: FieldInfo) -> str:
    if word := _default_name(field):
        return word
    text = f"`{_value_text(field.default)}`"
    readable = form.unit.readable(field.default) if isinstance(field.default, int) else ""
    return f"{text} (`{readable}`)" if readable else text


def _default_name(field: FieldInfo) -> str:
    """Return the name that replaces a default in texts; empty if texts show the default itself."""
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
    return "unlimited" if is_number and default in (INT_MAX, LONG_MAX) else ""


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_text, value)) if isinstance(value, tuple) else _text(value)


def _text(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _range(form: ValueForm) -> str:
    """Return the permitted values or the range of numbers; empty if there is neither."""
    if form.choices:
        return ", ".join(f"`{each}`" for each in form.choices)
    if form.least is None:
        return ""
    is_open = form.most is None or form.most in (INT_MAX, LONG_MAX)
    text = f"at least {form.least}" if is_open else f"{form.least} to {form.most}"
    return f"{text}, a multiple of {form.multiple_of}" if form.multiple_of else text


if __name__ == "__main__":
    sys.stdout.write(render())
