"""Lines and commands that fit a terminal."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.cli.terminal.lines import command_lines, fitted

ARGUMENTS = st.lists(st.text("ab-'$\\ ", min_size=1, max_size=12), min_size=1, max_size=20)


def test_line_when_it_fits_or_has_no_width_then_unchanged() -> None:
    assert list(fitted(["  two names"], 11)) == ["  two names"]
    assert list(fitted([f"  {'name ' * 50}end"], None)) == [f"  {'name ' * 50}end"]


def test_line_when_too_wide_then_wrapped_at_spaces_and_indented_more() -> None:
    assert list(fitted(["  reason: no space left"], 12)) == [
        "  reason: no",
        "    space",
        "    left",
    ]


def test_name_when_wider_than_a_line_then_broken_and_nothing_is_left_out() -> None:
    assert list(fitted(["x" * 15], 10)) == ["x" * 10, f"  {'x' * 5}"]


def test_line_when_a_command_in_it_does_not_fit_the_rest_then_the_command_is_not_broken() -> None:
    text = "no such policy. `rlm policy list` shows all."

    assert [*fitted([text], 28)] == ["no such policy.", "  `rlm policy list` shows", "  all."]


def test_line_when_it_has_control_characters_then_they_are_replaced() -> None:
    assert list(fitted(["a\x1b[2J\nb"], 10)) == ["a?[2J?b"]


@pytest.mark.parametrize("width", [36, 80])
def test_command_when_an_option_has_a_value_then_both_are_on_one_line(width: int) -> None:
    command = "rlm resume orders copy --yes --config rlm.properties --timeout 30s"

    lines = list(command_lines(command, width))

    assert max(map(len, lines)) <= width
    assert any("--config rlm.properties" in line for line in lines)
    assert any("--timeout 30s" in line for line in lines)


def test_command_when_an_argument_does_not_fit_then_it_is_on_one_line() -> None:
    command = f"rlm resume {'x' * 80} copy"

    assert list(command_lines(command, 80)) == [f"  > {command}"]


@given(arguments=ARGUMENTS, width=st.integers(min_value=20, max_value=60))
def test_command_when_copied_then_the_shell_reads_the_same_arguments(
    arguments: list[str], width: int
) -> None:
    command = shlex.join(["rlm", *arguments])

    copied = "\n".join(command_lines(command, width)).removeprefix("  > ")

    continued = copied.replace("\\\n", "")  # as a shell reads it, unlike shlex
    assert shlex.split(continued) == ["rlm", *arguments]


def test_command_when_continued_then_a_shell_runs_it() -> None:
    arguments = ["--holder", "spark app 7", "--topic", "orders", "--config", "f"]

    lines = list(command_lines(shlex.join(["printf", "%s\\n", *arguments]), 40))

    done = subprocess.run(
        ["bash", "-c", "\n".join(lines).removeprefix("  > ")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(lines) > 1
    assert done.stdout.splitlines() == arguments
