"""Commands that delete take `--dry-run` and `--yes`, and need either one without a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rlm.cli.invocation.consent import can_delete, deletes
from rlm.cli.invocation.options import ClusterOptions
from tests.unit.rlm.cli.test_early_checks import refused
from tests.unit.rlm.cli.test_help import COMMAND, commands_of

COMMANDS = {" ".join(names): command for names, command in commands_of(COMMAND)}
DELETING = {name: each for name, each in COMMANDS.items() if can_delete(each.callback)}
DELETIONS = [
    (name, option)
    for name, each in DELETING.items()
    for option in each.callback.deletes_with or ("",)
]
_ALSO_NEEDED = {"segments delete": ["--streamed"]}
_DANGERS = ("**Data loss:**", "**Danger:**")
_DELETES = re.compile(r"(\*\*Data loss:\*\* )?(delete|release|expire|purge)\b", re.IGNORECASE)


def texts_of(command: Any) -> list[str]:
    """Return the summary of a command, and the help of each of its options."""
    return [str(command.help), *(getattr(each, "help", None) or "" for each in command.params)]


def options_of(command: Any) -> set[str]:
    return {option for each in command.params for option in each.opts}


def test_commands_when_marked_then_the_known_ones_are_among_them() -> None:
    """If the mark were lost on the way to the command line, no other test would notice."""
    assert {"dlq retry", "topic disable", "segments delete"} <= DELETING.keys()
    assert {("topic disable", "force"), ("uninstall", "force")} <= {*DELETIONS}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_when_its_help_begins_with_a_deletion_then_it_is_marked(name: str) -> None:
    begins = [text for text in texts_of(COMMANDS[name]) if _DELETES.match(text)]

    assert name in DELETING or begins == []


@pytest.mark.parametrize("name", COMMANDS)
def test_command_when_it_deletes_or_states_a_danger_then_it_takes_dry_run_and_yes(
    name: str,
) -> None:
    command = COMMANDS[name]
    is_dangerous = any(danger in text for text in texts_of(command) for danger in _DANGERS)

    if name in DELETING or is_dangerous:
        assert {"--dry-run", "--yes", "-y"} <= options_of(command)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_when_it_takes_yes_then_it_deletes_or_states_a_danger(name: str) -> None:
    command = COMMANDS[name]

    if "--yes" in options_of(command):
        texts = texts_of(command)
        assert name in DELETING or any(danger in text for text in texts for danger in _DANGERS)


def arguments_of(name: str, directory: Path, option: str = "") -> list[str]:
    """Return arguments with which the command deletes, with `option` if given, unconfirmed."""
    policies = directory / "policies.yaml"
    policies.write_text("patterns: {}\ntopics:\n  orders: {}\n")
    values = {"--file": str(policies), "--holder": "spark"}
    given = [*name.split(), *_ALSO_NEEDED.get(name, ())]
    for each in COMMANDS[name].params:
        if each.param_type_name == "argument":
            given.append("orders")
        elif each.required:
            given += [each.opts[0], values[each.opts[0]]]
        elif each.name == option:
            given.append(each.opts[0])
    return given


@pytest.mark.parametrize(("name", "option"), DELETIONS)
def test_command_when_it_would_delete_without_a_terminal_then_refused_before_it_connects(
    name: str, option: str, tmp_path: Path
) -> None:
    """No configuration is given, so a command that does not refuse ends with another error."""
    given = arguments_of(name, tmp_path, option)

    assert "cannot ask for confirmation without a terminal" in refused(*given)
    assert "no configuration" in refused(*given, "--dry-run")
    assert "no configuration" in refused(*given, "--yes")


@pytest.mark.parametrize(
    "name", [name for name, each in DELETING.items() if each.callback.deletes_with]
)
def test_command_when_it_deletes_only_with_an_option_then_it_needs_no_consent_without_it(
    name: str, tmp_path: Path
) -> None:
    assert "no configuration" in refused(*arguments_of(name, tmp_path))


def test_mark_when_a_command_lacks_an_option_then_it_cannot_be_made() -> None:
    def purge(*, yes: bool, cluster: ClusterOptions) -> None:
        raise AssertionError(yes, cluster)

    with pytest.raises(TypeError, match=r"purge deletes, but does not take \['dry_run'\]"):
        deletes()(purge)
