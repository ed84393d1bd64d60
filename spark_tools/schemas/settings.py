"""Parses the options for decoding columns, and reads the files that these options name.

The option `schema.registry.config` names a file with `schema.registry.*` keys. Only the driver
reads the file. An option overrides the same key in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from rsm.config.properties import read_properties
from rsm.segment.errors import InvalidConfigError
from spark_tools.option_values import OptionValues, unknown_option, wrong_value
from spark_tools.schemas.decode_options import (
    CLIENT_KEYS,
    DECODED_COLUMNS,
    MAX_RETRIES,
    MAX_RETRY_WAIT,
    REGISTRY_OPTIONS,
    REGISTRY_PREFIX,
    REQUEST_TIMEOUT,
    RETRY_WAIT,
    schema_version_of,
)
from spark_tools.schemas.schema_text import MAX_SCHEMA_BYTES, SchemaFormat


class DecodeMode(Enum):
    """The treatment of undecodable records: fail the task, or give the reason in a column."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """The address of a schema registry; `client` is the configuration of Confluent's client."""

    url: str
    client: Mapping[str, str | int | float] = field(repr=False)

    @classmethod
    def of(cls, given: OptionValues) -> RegistrySettings | None:
        """Parse the options. Returns None if none is given.

        Raises InvalidConfigError for invalid options, and for options without a URL.
        """
        values = _registry_values(given)
        known = [option.name for option in REGISTRY_OPTIONS]
        for name in values.names():
            if name not in known:
                raise unknown_option(name, known, common_prefix=REGISTRY_PREFIX)
        url = values.text(f"{REGISTRY_PREFIX}url")
        if url is None:
            if values.names():
                raise InvalidConfigError(
                    "cannot configure the schema registry: its URL is missing",
                    option=f"{REGISTRY_PREFIX}url",
                    advice="Set it, or omit the other options of the registry",
                )
            return None
        _require_urls(url)
        client: dict[str, str | int | float] = {
            "url": url,
            "timeout": values.amount(REQUEST_TIMEOUT) / 1000,
            "max.retries": values.amount(MAX_RETRIES),
            "retries.wait.ms": values.amount(RETRY_WAIT),
            "retries.max.wait.ms": values.amount(MAX_RETRY_WAIT),
        }
        for option in CLIENT_KEYS:
            text = values.text(option.name)
            if text is not None:
                client[option.name.removeprefix(REGISTRY_PREFIX)] = text
        if "bearer.auth.token" in client:
            client["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            client.setdefault("bearer.auth.logical.cluster", "")
        return cls(url=url, client=client)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSettings:
    """The settings of one decoded column.

    `schema` is the text of the schema; None if the registry provides it. If `version` is None, the
    subject's latest version is used.
    """

    column: str
    format: SchemaFormat
    schema: str | None
    subject: str | None
    version: int | None
    message: str | None

    @classmethod
    def of(cls, given: OptionValues, column: str) -> ColumnSettings | None:
        """Parse a column's options. Returns None if the column stays binary.

        Raises InvalidConfigError for invalid or contradictory options.
        """
        chosen = given.choice(f"{column}Format", SchemaFormat, SchemaFormat.BINARY)
        names = ("Schema", "Subject", "SchemaVersion", "Message")
        unused = [f"{column}{name}" for name in names if given.has(f"{column}{name}")]
        if chosen is SchemaFormat.BINARY:
            if unused:
                raise InvalidConfigError(
                    "cannot use the option: the column is not decoded",
                    option=unused[0],
                    missing=f"{column}Format",
                    advice="Set the missing option, or omit this one",
                )
            return None
        if chosen is not SchemaFormat.PROTOBUF and given.has(f"{column}Message"):
            raise InvalidConfigError(
                "cannot use the option: it applies only to Protobuf",
                option=f"{column}Message",
                found=f"{column}Format {chosen.value}",
                advice="Omit it, or set the format to protobuf",
            )
        schema = _schema(given, f"{column}Schema")
        if schema is not None and len(unused) > 1 + given.has(f"{column}Message"):
            raise InvalidConfigError(
                "options contradict each other",
                options=",".join(unused),
                expected="one schema",
                advice="Omit all but one of them",
            )
        version = schema_version_of(column)
        version_text = given.text(version.name)
        is_latest = version_text is None or version_text.lower() in version.choices
        return cls(
            column=column,
            format=chosen,
            schema=schema,
            subject=given.text(f"{column}Subject"),
            version=None if is_latest else given.amount(version),
            message=given.text(f"{column}Message"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSettings:
    """The columns to decode; none by default."""

    columns: tuple[ColumnSettings, ...] = ()
    registry: RegistrySettings | None = None
    mode: DecodeMode = DecodeMode.FAILFAST

    @classmethod
    def of(cls, given: OptionValues) -> DecodeSettings:
        """Parse the options. Raises InvalidConfigError for unknown, invalid or conflicting ones."""
        found = (ColumnSettings.of(given, column) for column in DECODED_COLUMNS)
        columns = tuple(each for each in found if each is not None)
        registry = RegistrySettings.of(given)
        for each in columns:
            if registry is None and each.schema is None:
                raise InvalidConfigError(
                    "cannot decode a column: it has no schema",
                    column=each.column,
                    expected=f"{REGISTRY_PREFIX}url, or {each.column}Schema",
                    advice="Set one of these options",
                )
        return cls(
            columns=columns,
            registry=registry,
            mode=given.choice("decodeMode", DecodeMode, DecodeMode.FAILFAST),
        )


def _registry_values(given: OptionValues) -> OptionValues:
    """Return the registry's options, including those in the file that the user names."""
    path = given.text(f"{REGISTRY_PREFIX}config")
    of_file = {} if path is None else read_properties(Path(path)).values()
    options = {name: given.text(name) for name in given.names()}
    values = {**of_file, **{name: text for name, text in options.items() if text is not None}}
    return OptionValues(
        {name: text for name, text in values.items() if name.startswith(REGISTRY_PREFIX)}
    )


def _require_urls(text: str) -> None:
    """Raise InvalidConfigError if a URL is invalid or contains credentials. URLs are logged."""
    option = f"{REGISTRY_PREFIX}url"
    for url in text.split(","):
        try:
            parts = urlsplit(url.strip())
            has_port = parts.port != 0
        except ValueError as error:
            raise wrong_value(option, "not a URL", "comma-separated URLs") from error
        if parts.username is not None or parts.password is not None:
            raise InvalidConfigError(
                "the URL is invalid: it contains credentials",
                option=option,
                expected=f"{REGISTRY_PREFIX}basic.auth.user.info",
                advice="Remove them from the URL, and set the expected option",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
            raise wrong_value(option, url, "URLs that begin with http:// or https://")


def _schema(given: OptionValues, name: str) -> str | None:
    """Return the option's text; if the option names a file, the file's text."""
    text = given.text(name)
    if text is None or any(sign in text for sign in '{};\n"'):
        return text
    try:
        path = Path(text)
        if path.stat().st_size > MAX_SCHEMA_BYTES:
            raise wrong_value(name, text, f"a file of at most {MAX_SCHEMA_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidConfigError(
            "cannot read a schema",
            option=name,
            file=text,
            reason=error,
            advice="Check its path, permissions and encoding",
        ) from error
