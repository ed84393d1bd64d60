"""Parses what to decode, and by which schema, from the data source's options; reads files.

The registry's keys are those of Confluent's clients, after `schema.registry.`. A file that
`schema.registry.config` names can have them; only the driver reads it. An option overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

import javaproperties

from rsm.segment.errors import InvalidConfigError
from spark_tools.option_values import OptionValues, wrong_value
from spark_tools.schemas.schema_text import MAX_SCHEMA_BYTES, SchemaFormat

REGISTRY_PREFIX = "schema.registry."
DECODED_COLUMNS = ("key", "value")
OPTIONS = (
    "decodeMode",
    *(
        f"{column}{name}"
        for column in DECODED_COLUMNS
        for name in ("Format", "Schema", "Subject", "SchemaVersion", "Message")
    ),
)
_LATEST = "latest"
_MAX_VERSION = (1 << 31) - 1
_DEFAULT_TIMEOUT_MS = 10_000
_DEFAULT_RETRIES = 3
_DEFAULT_RETRY_WAIT_MS = 100
_DEFAULT_MAX_RETRY_WAIT_MS = 2_000
_MAX_MS = 600_000
_PASSED_ON = (
    "basic.auth.user.info", "bearer.auth.token", "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id", "ssl.ca.location", "ssl.certificate.location",
    "ssl.key.location", "ssl.key.password",
)  # fmt: skip
REGISTRY_KEYS = frozenset(
    {
        "url", "config", "request.timeout.ms", "max.retries", "retries.wait.ms",
        "retries.max.wait.ms", *_PASSED_ON,
    }
)  # fmt: skip


class DecodeMode(Enum):
    """Whether an undecodable record fails its task, or has the reason in a column."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """The address of a schema registry; `client` is the configuration of Confluent's client."""

    url: str
    client: Mapping[str, str | int | float] = field(repr=False)

    @classmethod
    def of(cls, given: OptionValues) -> RegistrySettings | None:
        """Parse the options; None without a URL. Raises InvalidConfigError."""
        values = _registry_values(given)
        for key in values.names():
            if key not in REGISTRY_KEYS:
                raise InvalidConfigError(
                    "unknown option",
                    option=REGISTRY_PREFIX + key,
                    expected=",".join(sorted(REGISTRY_KEYS)),
                )
        url = values.text("url")
        if url is None:
            if values.names():
                raise InvalidConfigError("an option is missing", option=f"{REGISTRY_PREFIX}url")
            return None
        _require_urls(url)
        client: dict[str, str | int | float] = {
            "url": url,
            "timeout": _ms(values, "request.timeout.ms", _DEFAULT_TIMEOUT_MS) / 1000,
            "max.retries": values.number("max.retries", _DEFAULT_RETRIES, at_least=0, at_most=20),
            "retries.wait.ms": _ms(values, "retries.wait.ms", _DEFAULT_RETRY_WAIT_MS),
            "retries.max.wait.ms": _ms(values, "retries.max.wait.ms", _DEFAULT_MAX_RETRY_WAIT_MS),
        }
        client |= {key: text for key in _PASSED_ON if (text := values.text(key)) is not None}
        if "bearer.auth.token" in client:
            client["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            client.setdefault("bearer.auth.logical.cluster", "")
        return cls(url=url, client=client)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSettings:
    """How one column is decoded.

    `schema` is the text of an option or a file. `version` None: the subject's latest.
    """

    column: str
    format: SchemaFormat
    schema: str | None
    subject: str | None
    version: int | None
    message: str | None

    @classmethod
    def of(cls, given: OptionValues, column: str) -> ColumnSettings | None:
        """Parse a column's options; None if it stays binary. Raises InvalidConfigError."""
        chosen = given.choice(f"{column}Format", SchemaFormat, SchemaFormat.BINARY)
        names = ("Schema", "Subject", "SchemaVersion", "Message")
        unused = [f"{column}{name}" for name in names if given.has(f"{column}{name}")]
        if chosen is SchemaFormat.BINARY:
            if unused:
                raise InvalidConfigError(
                    "an option has no effect", option=unused[0], missing=f"{column}Format"
                )
            return None
        if chosen is not SchemaFormat.PROTOBUF and given.has(f"{column}Message"):
            raise InvalidConfigError(
                "the option applies only to Protobuf",
                option=f"{column}Message",
                found=f"{column}Format {chosen.value}",
            )
        schema = _schema(given, f"{column}Schema")
        if schema is not None and len(unused) > 1 + given.has(f"{column}Message"):
            raise InvalidConfigError(
                "options contradict each other", options=",".join(unused), expected="one schema"
            )
        version = given.text(f"{column}SchemaVersion") or _LATEST
        is_latest = version.lower() == _LATEST
        return cls(
            column=column,
            format=chosen,
            schema=schema,
            subject=given.text(f"{column}Subject"),
            version=None
            if is_latest
            else given.number(f"{column}SchemaVersion", 1, at_least=1, at_most=_MAX_VERSION),
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
        """Parse the options. Raises InvalidConfigError with the found and the expected value."""
        found = (ColumnSettings.of(given, column) for column in DECODED_COLUMNS)
        columns = tuple(each for each in found if each is not None)
        registry = RegistrySettings.of(given)
        for each in columns:
            if registry is None and each.schema is None:
                raise InvalidConfigError(
                    "a column has no schema",
                    column=each.column,
                    expected=f"{REGISTRY_PREFIX}url, or {each.column}Schema",
                )
        return cls(
            columns=columns,
            registry=registry,
            mode=given.choice("decodeMode", DecodeMode, DecodeMode.FAILFAST),
        )


def _registry_values(given: OptionValues) -> OptionValues:
    """Return the registry's keys without the prefix, including those of the file."""
    path = given.text(f"{REGISTRY_PREFIX}config")
    of_file = {} if path is None else _file_values(path)
    options = {name: given.text(name) for name in given.names()}
    values = {**of_file, **{name: text for name, text in options.items() if text is not None}}
    return OptionValues(
        {
            name.removeprefix(REGISTRY_PREFIX): text
            for name, text in values.items()
            if name.startswith(REGISTRY_PREFIX)
        }
    )


def _file_values(path: str) -> Mapping[str, str]:
    try:
        loaded: Mapping[str, str] = javaproperties.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidConfigError(
            "a file cannot be read", option=f"{REGISTRY_PREFIX}config", file=path, reason=error
        ) from error
    return {key: value.strip() for key, value in loaded.items()}


def _require_urls(text: str) -> None:
    """Raise InvalidConfigError for an invalid URL, and for credentials, because URLs are logged."""
    option = f"{REGISTRY_PREFIX}url"
    for url in text.split(","):
        try:
            parts = urlsplit(url.strip())
            has_port = parts.port != 0
        except ValueError as error:
            raise wrong_value(option, "not a URL", "URLs, comma-separated") from error
        if parts.username is not None or parts.password is not None:
            raise InvalidConfigError(
                "the URL contains credentials",
                option=option,
                expected=f"{REGISTRY_PREFIX}basic.auth.user.info",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
            raise wrong_value(option, url, "URLs that begin with http:// or https://")


def _ms(values: OptionValues, name: str, default: int) -> int:
    return values.number(name, default, at_least=1, at_most=_MAX_MS)


def _schema(given: OptionValues, name: str) -> str | None:
    """Return the option's text, or the text of the file that it names."""
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
            "a schema cannot be read", option=name, file=text, reason=error
        ) from error
