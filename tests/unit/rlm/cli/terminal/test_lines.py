"""Lines that fit a terminal."""

from __future__ import annotations

from rlm.cli.terminal.lines import fitted


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


def test_line_when_it_has_control_characters_then_they_are_replaced() -> None:
    assert list(fitted(["a\x1b[2J\nb"], 10)) == ["a?[2J?b"]
