"""Generates docs/policies.schema.json: `python -m rlm.cli.policies_schema > FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from rlm.cli.policies.policies_file import (
    DEFAULT_KEY,
    PATTERNS_KEY,
    SETTING_FORMS,
    TOPIC_CHARACTERS,
    TOPICS_KEY,
    SettingForm,
)
from rlm.policy.topic.levels import PATTERN_CHARACTERS, PATTERN_MAX_CHARACTERS

_SETTINGS = {"$ref": "#/$defs/settings"}


def render() -> str:
    """Return the whole file: the JSON schema of the file that `rlm apply` reads."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Policies",
        "description": "The policies of patterns, the default and topics that rlm apply sets.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            DEFAULT_KEY: _SETTINGS,
            PATTERNS_KEY: {
                "type": ["object", "null"],
                "propertyNames": {
                    "pattern": f"^{PATTERN_CHARACTERS}+$",
                    "maxLength": PATTERN_MAX_CHARACTERS,
                },
                "additionalProperties": _SETTINGS,
            },
            TOPICS_KEY: {
                "type": ["object", "null"],
                "propertyNames": {
                    "pattern": f"^{TOPIC_CHARACTERS}+$",
                    "maxLength": PATTERN_MAX_CHARACTERS,
                },
                "additionalProperties": _SETTINGS,
            },
        },
        "$defs": {
            "settings": {
                "type": ["object", "null"],
                "additionalProperties": False,
                "properties": {
                    setting.field: _property(form) for setting, form in SETTING_FORMS.items()
                },
            }
        },
    }
    return json.dumps(schema, indent=2) + "\n"


def _property(form: SettingForm) -> Mapping[str, object]:
    if form.choices:
        return {"enum": list(form.choices), "description": form.meaning}
    kinds = "string" if form.is_text else ["integer", "string"]
    return {"type": kinds, "description": form.meaning}


if __name__ == "__main__":
    sys.stdout.write(render())
