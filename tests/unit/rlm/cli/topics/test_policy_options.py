"""The options of a policy as the flags that a command gets, and as a line for people."""

from __future__ import annotations

from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from rlm.cli.topics.policy_options import with_policy_options
from rlm.cli.topics.policy_text import policy_line
from rlm.policy.topic.topic_policy import OffloadModeFlag, PolicyFlags
from rlmm.events.policy import PolicySetting
from rsm.segment.offload_settings import OffloadMode
from tests.unit.rlm.policy.views import POLICY


def flags_of(*arguments: str) -> tuple[int, list[PolicyFlags]]:
    """Return the exit code of a command with these options, and the flags that it gets."""
    given: list[PolicyFlags] = []

    @with_policy_options
    def command(*, flags: PolicyFlags) -> None:
        given.append(flags)

    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments).exit_code, given


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ((), PolicyFlags()),
        (("--offload-mode", "stream"), PolicyFlags(offload_mode=OffloadModeFlag.STREAM)),
        (("--offload-mode", "inherit"), PolicyFlags(offload_mode=OffloadModeFlag.INHERIT)),
        (("--offload-segment-max-bytes", "1GiB"), PolicyFlags(offload_segment_max_bytes=1 << 30)),
        (("--offload-segment-size", "-1"), PolicyFlags(offload_segment_max_bytes=-1)),
        (("--offload-segment-rollover-ms", "5s"), PolicyFlags(offload_segment_rollover_ms=5_000)),
        (("--layout", "block_v2"), PolicyFlags(layout="block_v2")),
        (("--layout", "a.b:C"), PolicyFlags(layout="a.b:C")),
        (("--inherit", "layout"), PolicyFlags(inherit=frozenset({PolicySetting.LAYOUT}))),
        (("--offload-segment-rollover", "1000"), PolicyFlags(offload_segment_rollover_ms=1_000)),
    ],
)
def test_offload_options_when_given_then_are_the_commands_flags(
    arguments: tuple[str, ...], flags: PolicyFlags
) -> None:
    assert flags_of(*arguments) == (0, [flags])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--offload-mode", "ledger"),
        ("--offload-segment-max-bytes", "1023"),
        ("--offload-segment-max-bytes", "65GiB"),
        ("--offload-segment-rollover-ms", "soon"),
        ("--layout", "blocks"),
        ("--layout", ""),
    ],
)
def test_offload_options_when_out_of_range_then_refused_before_the_command_runs(
    arguments: tuple[str, ...],
) -> None:
    assert flags_of(*arguments) == (2, [])


def test_policy_when_it_has_offload_settings_then_its_line_has_them() -> None:
    policy = replace(
        POLICY,
        offload_mode=OffloadMode.STREAM,
        offload_segment_max_bytes=2_048,
        offload_segment_rollover_ms=1_000,
        layout="block_v2",
    )

    assert policy_line(policy).removeprefix(policy_line(POLICY)) == (
        " offload.mode=stream max.size.per.offload.segment.bytes=2048"
        " max.offload.segment.rollover.time.ms=1000 layout=block_v2"
    )


def test_settings_when_left_to_the_next_level_then_are_named_in_the_flags() -> None:
    flags = PolicyFlags(
        inherit=frozenset({PolicySetting.RETENTION_MS, PolicySetting.OUTAGE_POLICY})
    )

    assert flags_of("--inherit", "retention-ms", "--inherit", "outage-policy") == (0, [flags])


@pytest.mark.parametrize(
    "arguments", [("--inherit", "layouts"), ("--inherit", "retention-ms", "--retention", "1d")]
)
def test_inherit_when_unknown_or_given_with_a_value_then_refused_before_the_command_runs(
    arguments: tuple[str, ...],
) -> None:
    code, given = flags_of(*arguments)

    assert (code != 0, given) == (True, [])
