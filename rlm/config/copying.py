"""The settings of how fast segments are copied."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rlm.config.section import Section

_Rate = Annotated[int, Field(ge=1, le=2**63 - 1)]


class CopyingConfig(Section):
    """The pace of copying."""

    bytes_per_second: _Rate = Field(
        default=2**63 - 1,
        validation_alias="remote.log.manager.copy.max.bytes.per.second",
        description="Bytes of segments per second that this broker's copies read and store, in "
        "equal shares; what is behind after an outage is caught up with at this rate. What a copy "
        "waits for it is not counted against `remote.copy.attempt.timeout.ms`. The default is no "
        "limit.",
    )
