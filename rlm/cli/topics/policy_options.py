"""Defines the options of a topic's policy for all commands that take them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import signature
from typing import Annotated, Any

import typer

from rlm.cli.invocation.amount_options import durations, sizes
from rlm.policy.topic.topic_policy import OffloadModeFlag, PolicyFlags, check_flags
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rsm.config.choices import Layout, parse_layout
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OFFLOAD_SEGMENT_GREATEST_BYTES, OFFLOAD_SEGMENT_LEAST_BYTES

_OPTION_OF = {each: each.field.replace("_", "-") for each in PolicySetting}


def _setting(name: str) -> PolicySetting:
    """Return the setting with this option's name; typer may pass one that is already parsed."""
    if isinstance(name, PolicySetting):
        return name
    found = next((each for each, option in _OPTION_OF.items() if option == name), None)
    if found is None:
        names = ", ".join(map(repr, _OPTION_OF.values()))
        raise typer.BadParameter(f"{name!r} is not one of {names}")
    return found


def layout_name(text: str) -> str:
    """Return a layout as rsm.config.layout names it. Raises BadParameter for other text."""
    try:
        found = parse_layout(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not {error}") from error
    return found.value if isinstance(found, Layout) else str(found)


_MINUTE_MS = 60_000
_MIB = 1 << 20

_TotalMs = Annotated[
    int | None,
    typer.Option(
        "--retention-ms",
        "--retention",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="Total retention, such as 30d; in ms if it has no unit. -1 is unlimited.",
    ),
]
_TotalBytes = Annotated[
    int | None,
    typer.Option(
        parser=sizes(special=[-1]),
        metavar="SIZE",
        help="Total retention of each partition, such as 50GiB; in bytes if it has no unit. -1 is "
        "unlimited.",
    ),
]
_LocalMs = Annotated[
    int | None,
    typer.Option(
        "--local-retention-ms",
        "--local-retention",
        parser=durations(special=[-1, -2]),
        metavar="DURATION",
        help="Retention on the broker's disk, such as 1h; in ms if it has no unit. -2 is the total "
        "retention, -1 unlimited.",
    ),
]
_LocalBytes = Annotated[
    int | None,
    typer.Option(
        parser=sizes(special=[-1, -2]),
        metavar="SIZE",
        help="Retention of each partition on the broker's disk; in bytes if it has no unit. -2 is "
        "the total retention, -1 unlimited.",
    ),
]
_LagMs = Annotated[
    int | None,
    typer.Option(
        "--copy-lag-ms",
        "--copy-lag",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="Copy a rolled segment once its newest record is this old; in ms if it has no unit. 0 "
        "copies at once; -1 uses the limit of local retention. If both copy lags are set, the "
        "one that ends first decides.",
    ),
]
_LagBytes = Annotated[
    int | None,
    typer.Option(
        parser=sizes(special=[-1]),
        metavar="SIZE",
        help="Copy a rolled segment once the segments after it have this total size; in bytes "
        "if it has no unit. 0 copies at once; -1 uses the limit of local retention.",
    ),
]
_OffloadMinutes = Annotated[
    int | None,
    typer.Option(
        parser=durations(unit_ms=_MINUTE_MS),
        metavar="DURATION",
        help="As --copy-lag-ms, counted from the time at which the broker rolled the segment "
        "(PIP-17); in minutes if it has no unit.",
    ),
]
_OffloadMib = Annotated[
    int | None,
    typer.Option(
        parser=sizes(unit_bytes=_MIB),
        metavar="SIZE",
        help="As --copy-lag-bytes (PIP-17); in MiB if it has no unit.",
    ),
]
_DeletionLagMs = Annotated[
    int | None,
    typer.Option(
        "--local-deletion-lag-ms",
        "--deletion-lag",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="How long a stored segment stays on the broker's disk (PIP-17's deletion lag); "
        "in ms if it has no unit. -1 inherits it from the next policy level; the last level is the "
        "managers' remote.local.trim.deletion.lag.ms.",
    ),
]


class _OutageChoice(Enum):
    HOLD = "hold"
    SHED_OLDEST = "shed"


_Outage = Annotated[
    _OutageChoice | None,
    typer.Option(
        help="**Data loss:** shed gives up the oldest unstored data, and records the gap, if the "
        "store is unreachable and the broker's disk fills. hold keeps unstored data."
    ),
]
_OffloadMode = Annotated[
    OffloadModeFlag | None,
    typer.Option(
        help="What managers offload. segment: rolled log segments. stream: the log as it grows, as "
        "offload segments (PIP-76). inherit: the mode of the next policy level; the last level is "
        "the managers' offload.mode.",
    ),
]
_SegmentMaxBytes = Annotated[
    int | None,
    typer.Option(
        "--offload-segment-max-bytes",
        "--offload-segment-size",
        parser=sizes(
            special=[-1],
            least_bytes=OFFLOAD_SEGMENT_LEAST_BYTES,
            most_bytes=OFFLOAD_SEGMENT_GREATEST_BYTES,
        ),
        metavar="SIZE",
        help="With offload mode stream: size at which an offload segment ends, such as 1GiB; "
        "in bytes if it has no unit. -1 inherits it from the next policy level; the last level "
        "is the managers' max.size.per.offload.segment.bytes.",
    ),
]
_SegmentRolloverMs = Annotated[
    int | None,
    typer.Option(
        "--offload-segment-rollover-ms",
        "--offload-segment-rollover",
        parser=durations(special=[-1]),
        metavar="DURATION",
        help="With offload mode stream: time after which an offload segment ends, such as 10m; "
        "in ms if it has no unit. -1 inherits it from the next policy level; the last level is the "
        "managers' max.offload.segment.rollover.time.ms.",
    ),
]
_Layout = Annotated[
    str | None,
    typer.Option(
        parser=layout_name,
        metavar="LAYOUT",
        help="Layout of new segments: raw, chunked, block_v1, block_v2, or a class of the "
        "managers' rsm.config.layout. A topic without a layout uses the first of that setting. "
        "Stored segments keep theirs. Streamed segments use the layout if it divides the log "
        "into chunks, such as chunked, and block_v2 otherwise.",
    ),
]
_Inherit = Annotated[
    list[PolicySetting] | None,
    typer.Option(
        "--inherit",
        parser=_setting,
        metavar="SETTING",
        help="Inherit a setting, such as retention-ms, from the next policy level: patterns, then "
        "the default (`rlm policy`). Can be given several times.",
    ),
]


def _policy_flags(  # noqa: PLR0913 - one for each option
    *,
    local_retention_ms: _LocalMs = None,
    local_retention_bytes: _LocalBytes = None,
    retention_ms: _TotalMs = None,
    retention_bytes: _TotalBytes = None,
    copy_lag_ms: _LagMs = None,
    copy_lag_bytes: _LagBytes = None,
    offload_time_in_minutes: _OffloadMinutes = None,
    offload_size_in_mb: _OffloadMib = None,
    outage_policy: _Outage = None,
    local_deletion_lag_ms: _DeletionLagMs = None,
    offload_mode: _OffloadMode = None,
    offload_segment_max_bytes: _SegmentMaxBytes = None,
    offload_segment_rollover_ms: _SegmentRolloverMs = None,
    layout: _Layout = None,
    inherit: _Inherit = None,
) -> PolicyFlags:
    flags = PolicyFlags(
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        local_retention_ms=local_retention_ms,
        local_retention_bytes=local_retention_bytes,
        copy_lag_ms=_one_of(copy_lag_ms, offload_time_in_minutes, _MINUTE_MS, "time-in-minutes"),
        copy_lag_since=_since(copy_lag_ms, offload_time_in_minutes),
        copy_lag_bytes=_one_of(copy_lag_bytes, offload_size_in_mb, _MIB, "size-in-mb"),
        outage_policy=None if outage_policy is None else OutagePolicy[outage_policy.name],
        local_deletion_lag_ms=local_deletion_lag_ms,
        offload_mode=offload_mode,
        offload_segment_max_bytes=offload_segment_max_bytes,
        offload_segment_rollover_ms=offload_segment_rollover_ms,
        layout=layout,
        inherit=frozenset(inherit or ()),
    )
    named = {each for each in flags.inherit if getattr(flags, each.field) is not None}
    if named:
        names = ", ".join(sorted(_OPTION_OF[each] for each in named))
        raise InvalidConfigError(
            "cannot both set and inherit a setting",
            settings=names,
            advice="Give either its value or --inherit",
        )
    return flags


def with_policy_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `flags` with the options of a policy, and check them."""
    own = signature(function, eval_str=True)
    shared = signature(_policy_flags, eval_str=True).parameters
    shown = [
        each
        for name, parameter in own.parameters.items()
        for each in (shared.values() if name == "flags" else (parameter,))
    ]

    def command(**arguments: Any) -> None:  # noqa: ANN401 - what the command takes
        flags = _policy_flags(**{name: arguments.pop(name) for name in shared})
        check_flags(flags, name=arguments.get("topic") or arguments.get("pattern") or "(default)")
        function(flags=flags, **arguments)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in shown}
    return command


def _one_of(value: int | None, other: int | None, factor: int, name: str) -> int | None:
    """Return a copy lag from its own option or PIP-17's; raise InvalidConfigError for both."""
    if value is not None and other is not None:
        raise InvalidConfigError(
            f"--offload-{name} sets a copy lag that another option sets, too", advice="Give one"
        )
    return value if other is None else other * factor


def _since(lag_ms: int | None, minutes: int | None) -> CopyLagSince | None:
    """Return the start of a copy lag that was given as a time; None if none was given."""
    if minutes is not None:
        return CopyLagSince.ROLL
    return None if lag_ms is None else CopyLagSince.NEWEST_RECORD
