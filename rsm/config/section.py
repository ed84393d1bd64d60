"""Defines the base class of a configuration's sections, and parses sections."""

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
    """A group of related settings, built from field names or from keys. Immutable.

    The value of a setting in ms, seconds, bytes or bytes per second can also be a duration or a
    size with a unit.
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
        """Convert a duration or size to a number; the field's type checks all other texts."""
        return unit_of(str(info.field_name)).in_units(value) if isinstance(value, str) else value


S = TypeVar("S", bound=Section)


def keys_of(section: type[Section]) -> tuple[str, ...]:
    """Return the keys of the section's settings, in the order of its fields."""
    return tuple(str(field.validation_alias) for field in section.model_fields.values())


def parse_section(section: type[S], values: Mapping[str, object]) -> S:
    """Parse a section's values by key. Raises InvalidConfigError for the first invalid value."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        raise _invalid(error.errors()[0], section, values) from None


def section_problems(
    section: type[Section], values: Mapping[str, object]
) -> tuple[InvalidConfigError, ...]:
    """Return an error for each invalid value; none if `parse_section` accepts the values."""
    try:
        section.model_validate(values)
    except ValidationError as error:
        return tuple(_invalid(each, section, values) for each in error.errors())
    return ()


def _invalid(
    details: ErrorDetails, section: type[Section], values: Mapping[str, object]
) -> InvalidConfigError:
    # Pydantic reports an invalid default by the field's name, and other errors by the key.
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
