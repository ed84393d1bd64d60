"""The base class of all sections of a configuration, and how a section is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from rsm.config.units import unit_of
from rsm.config.value_form import ValueForm
from rsm.secret_keys import NOT_SHOWN, is_secret, without_credentials
from rsm.segment.errors import InvalidConfigError

SET_IT = "Set it; docs/config.md describes it"


class Section(BaseModel):
    """A group of related settings; frozen, and built by field names or by keys.

    A setting in ms, seconds, bytes or bytes per second can also be a duration or size with a unit.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _parse_amount(cls, value: object, info: ValidationInfo) -> object:
        """Replace a duration or size by its number; the field's type checks any other text."""
        return unit_of(str(info.field_name)).in_units(value) if isinstance(value, str) else value


S = TypeVar("S", bound=Section)


def keys_of(section: type[Section]) -> tuple[str, ...]:
    """Return the section's keys as in the file, in order."""
    return tuple(str(field.validation_alias) for field in section.model_fields.values())


def parse_section(section: type[S], values: Mapping[str, object]) -> S:
    """Parse the values of a section's keys. Raises InvalidConfigError with the first wrong key."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        raise _invalid(error.errors()[0], section, values) from None


def section_problems(
    section: type[Section], values: Mapping[str, object]
) -> tuple[InvalidConfigError, ...]:
    """Return all errors in the values; empty if `parse_section` accepts them."""
    try:
        section.model_validate(values)
    except ValidationError as error:
        return tuple(_invalid(each, section, values) for each in error.errors())
    return ()


def _invalid(
    details: ErrorDetails, section: type[Section], values: Mapping[str, object]
) -> InvalidConfigError:
    # Pydantic locates an invalid default at the field's name, and all else at the key.
    located = str(details["loc"][0])
    name, field = next(
        (name, field)
        for name, field in section.model_fields.items()
        if located in {name, field.validation_alias}
    )
    key = str(field.validation_alias)
    if details["type"] == "missing":
        return InvalidConfigError("a setting is missing", key=key, advice=SET_IT)
    is_own_text = details["type"] == "value_error"
    expected = str(details["ctx"]["error"]) if is_own_text else ValueForm.of(name, field).expected
    value = values.get(key)
    shown = repr(without_credentials(value) if isinstance(value, str) else value)
    found = NOT_SHOWN if is_secret(key) else shown
    return InvalidConfigError("the setting is invalid", key=key, found=found, expected=expected)
