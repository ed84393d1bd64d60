"""Lists every setting with the value that applies and its origin, and masks secrets in texts.

Masks the values of secret keys, and all settings of plug-ins: only a plug-in knows which of its
settings are secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm.config.client_properties import PREFIX
from rlm.config.load import load_gateway_config
from rlm.config.reference import default_text
from rlm.config.sections import CLIENT_KEYS, SECTIONS
from rsm.config.metadata_manager import METADATA_PLUGIN_KEYS
from rsm.config.properties import Properties, Property, read_properties
from rsm.config.storage import PLUGIN_KEYS
from rsm.config.units import Unit, unit_of
from rsm.secret_keys import is_secret

MASK = "********"
_PLUGIN_SECRET_MIN_LENGTH = 8
_ANYWHERE_MIN_LENGTH = 4
"""Shorter secrets are masked only after their keys, because other text may contain them."""
_TEXT = Unit()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """Represents a key with its value from the file, else the default as in `docs/config.md`.

    `line` is 0 for a default. A duration or size is a number in the key's unit. A secret's value is
    MASK.
    """

    key: str
    value: str
    line: int = 0

    @property
    def is_default(self) -> bool:
        """Return whether the file lacks the key."""
        return not self.line

    def to_json(self) -> Mapping[str, object]:
        return {
            "key": self.key,
            "value": self.value,
            "origin": "default" if self.is_default else "file",
            "line": self.line or None,
        }


class SecretMask:
    """Replaces the secrets of a configuration in text, JSON and log lines by MASK. Immutable."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """`secrets` are the values to mask, by key, as `secret_settings` returns them."""
        self._patterns = (*_masked_anywhere(secrets.values()), *_masked_after_keys(secrets))

    def masked(self, content: bytes) -> bytes:
        """Return the content with each secret replaced by MASK."""
        for pattern in self._patterns:
            content = pattern.sub(rb"\g<before>" + MASK.encode(), content)
        return content


def effective_settings(path: Path) -> tuple[EffectiveSetting, ...]:
    """Return all settings of a file in the order of `docs/config.md`, those of plug-ins last.

    Raises InvalidConfigError.
    """
    load_gateway_config(path)
    return tuple(_settings(read_properties(path)))


def secret_settings(path: Path) -> Mapping[str, str]:
    """Return the file's secret values by key; no output may show them.

    Raises InvalidConfigError. Omits a plug-in's numbers and short values, such as `true`, unless
    the key suggests a secret: masking them everywhere would make other text unreadable.
    """
    entries = read_properties(path).entries
    plugin_keys = _plugin_keys(entries)
    return {
        key: entry.value
        for key, entry in entries.items()
        if entry.value and (is_secret(key) or (key in plugin_keys and _may_be_secret(entry.value)))
    }


def _may_be_secret(value: str) -> bool:
    return len(value) >= _PLUGIN_SECRET_MIN_LENGTH and not value.isdecimal()


def _settings(properties: Properties) -> Iterator[EffectiveSetting]:
    entries = properties.entries
    for section in SECTIONS:
        for name, field in section.model_fields.items():
            key = str(field.validation_alias)
            if key == CLIENT_KEYS:
                yield from _given((each for each in entries if each.startswith(PREFIX)), entries)
            elif key in entries:
                yield from _given((key,), entries, unit_of(name))
            elif key not in {PLUGIN_KEYS, METADATA_PLUGIN_KEYS}:
                yield EffectiveSetting(key=key, value=default_text(field))
    for key in _plugin_keys(entries):
        yield EffectiveSetting(key=key, value=MASK, line=entries[key].line)


def _given(
    keys: Iterator[str] | tuple[str, ...], entries: Mapping[str, Property], unit: Unit = _TEXT
) -> Iterator[EffectiveSetting]:
    for key in keys:
        entry = entries[key]
        value = MASK if is_secret(key) and entry.value else unit.in_units(entry.value)
        yield EffectiveSetting(key=key, value=value, line=entry.line)


def _plugin_keys(entries: Mapping[str, Property]) -> tuple[str, ...]:
    """Return the keys that no section lists: those of plug-ins, because others are errors."""
    known = {
        str(field.validation_alias) for each in SECTIONS for field in each.model_fields.values()
    }
    return tuple(key for key in entries if key not in known and not key.startswith(PREFIX))


def _masked_anywhere(secrets: Iterable[str]) -> Iterator[re.Pattern[bytes]]:
    """Yield a pattern for each spelling of the secrets that are long enough, the longest first."""
    found = {
        spelled
        for secret in secrets
        if len(secret) >= _ANYWHERE_MIN_LENGTH
        for spelled in _spellings(secret)
    }
    for spelled in sorted(found, key=len, reverse=True):
        yield re.compile(rb"(?P<before>)" + re.escape(spelled))


def _masked_after_keys(secrets: Mapping[str, str]) -> Iterator[re.Pattern[bytes]]:
    """Yield a pattern for each short secret after its key, as in `key=value` or `"key": "value"`.

    The patterns omit the prefix of client keys, because the Kafka client does not use it.
    """
    for key, secret in secrets.items():
        if len(secret) < _ANYWHERE_MIN_LENGTH:
            name = re.escape(key.removeprefix(PREFIX).encode())
            for spelled in _spellings(secret):
                before = rb"(?P<before>" + name + rb"[\"']?\s*[=:]\s*[\"']?)"
                yield re.compile(before + re.escape(spelled) + rb"(?!\w)")


def _spellings(secret: str) -> frozenset[bytes]:
    """Return the spellings of a secret: as it is, quoted once, and quoted twice."""
    once = _quoted(secret)
    twice = frozenset(again for each in once for again in _quoted(each))
    return frozenset(text.encode() for text in {secret, *once, *twice})


def _quoted(text: str) -> frozenset[str]:
    """Return how repr, JSON and log lines quote a text; log lines keep non-ASCII characters."""
    quoted = (repr(text), json.dumps(text), json.dumps(text, ensure_ascii=False))
    return frozenset(each[1:-1] for each in quoted)
