"""Defines the types of configuration values, and parses those that are not plain text.

Each parser gets the text from the file. If it is invalid, the parser raises ValueError with the
expected value, which pydantic reports.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rsm.segment.errors import InvalidConfigError

_HTTP_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")
_FILE_MODE = re.compile(r"0?6[0246]{2}")
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # Kafka's Topic.validate
TOPIC_NAME_RULE = "1 to 249 letters, digits, '.', '_' and '-', but not '.' or '..'"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class CopyVerification(Enum):
    """How the manager verifies a copy, in addition to its length and the store's checksum."""

    NONE = "none"
    READ = "read"


def is_topic_name(value: str) -> bool:
    """Return whether Kafka permits the name for a topic."""
    return _TOPIC_NAME.fullmatch(value) is not None and value not in {".", ".."}


def require_topic_name(text: str) -> str:
    """Return `text`; raise InvalidConfigError if Kafka does not permit it as a topic's name."""
    if not is_topic_name(text):
        raise InvalidConfigError(
            "the topic's name is invalid", found=text, expected=TOPIC_NAME_RULE
        )
    return text


def _parse_directory(value: object) -> object:
    if value == "":
        raise ValueError("a directory")
    return value


def _parse_http_addresses(value: object) -> object:
    return tuple(split_list(value)) if isinstance(value, str) else value


def _parse_file(value: object) -> object:
    if value == "":
        raise ValueError("a file")
    return value


def _parse_file_mode(value: object) -> object:
    if not isinstance(value, str):
        return value
    if _FILE_MODE.fullmatch(value) is None:
        raise ValueError("an octal file mode without execute bits, from 0600 to 0666, such as 0640")
    return int(value, 8)


def _check_key_prefix(value: str) -> str:
    segments = value.split("/")
    if value and (_CONTROL.search(value) or any(part in {"", ".", ".."} for part in segments)):
        raise ValueError(
            "an empty value, or names joined by '/'; no name is empty, '.' or '..', or contains "
            "control characters"
        )
    return value


def _check_http_address(value: str) -> str:
    if _HTTP_ADDRESS.fullmatch(value) is None:
        raise ValueError("http://host[:port][/path] or https://host[:port][/path]")
    return value


def _check_absolute_path(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError("an absolute path, which starts with '/'")
    return value


def split_list(text: str) -> list[str]:
    """Return the parts of a comma-separated list, stripped and without empty parts."""
    return [part.strip() for part in text.split(",") if part.strip()]


AbsolutePath = Annotated[str, AfterValidator(_check_absolute_path)]
FileMode = Annotated[int, BeforeValidator(_parse_file_mode)]
File = Annotated[Path, BeforeValidator(_parse_file)]
Directory = Annotated[Path, BeforeValidator(_parse_directory)]
KeyPrefix = Annotated[str, AfterValidator(_check_key_prefix)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
HttpAddress = Annotated[str, AfterValidator(_check_http_address)]
HttpAddresses = Annotated[tuple[HttpAddress, ...], BeforeValidator(_parse_http_addresses)]
SizeBytes = Annotated[int, Field(ge=0, le=2**63 - 1)]
DurationMs = Annotated[int, Field(ge=0, le=2**63 - 1)]
IntervalMs = Annotated[int, Field(ge=1, le=2**31 - 1)]
