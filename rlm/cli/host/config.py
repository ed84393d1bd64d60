"""`rlm config`: checks a configuration file, and shows the settings that apply."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rlm.app.startup_checks import host_problems
from rlm.cli.invocation.options import ConfigOption, JsonOption, naming_config_check
from rlm.cli.invocation.output import printing
from rlm.config.effective import MASK, EffectiveSetting, effective_settings
from rlm.config.load import Config, load_config
from rlm.process.open_access import open_access
from rlm.process.state_dir import nearly_full_disk
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, TieredStorageError

_PROBLEM = JsonShape(
    name="ConfigProblem",
    meaning="Why `rlm run` does not accept a file.",
    fields={
        "message": JsonField(JsonKind.TEXT, "What is wrong."),
        "values": JsonField(
            JsonKind.MAP,
            "Details of the problem as texts, such as `file`, `line`, `key` and the value.",
        ),
    },
)
CONFIG_CHECK_DOCUMENT = JsonShape(
    name="ConfigCheck",
    meaning="Whether `rlm run` accepts a configuration file.",
    fields={
        "file": JsonField(JsonKind.TEXT, "The file."),
        "ok": JsonField(JsonKind.FLAG, "Whether `rlm run` accepts the file."),
        "problems": JsonField(
            _PROBLEM, "All problems of the file; if it has none, those of the host.", is_list=True
        ),
        "warnings": JsonField(
            JsonKind.TEXT,
            "Files that other users can read or write, and a nearly full disk of `state.dir`; "
            "checked only if there are no problems.",
            is_list=True,
        ),
    },
)
_SETTING = JsonShape(
    name="EffectiveSetting",
    meaning="One setting with its value.",
    fields={
        "key": JsonField(JsonKind.TEXT, "The key."),
        "value": JsonField(
            JsonKind.TEXT,
            "The value in the file, with a duration or size as a number; for other keys, the "
            f"default as `docs/config.md` shows it. `{MASK}` for a secret.",
        ),
        "origin": JsonField(JsonKind.TEXT, "`file` or `default`."),
        "line": JsonField(
            JsonKind.COUNT,
            "The line in the file; null if the file lacks the key.",
            is_nullable=True,
        ),
    },
)
CONFIG_SHOW_DOCUMENT = JsonShape(
    name="Config",
    meaning="The settings that apply.",
    fields={
        "file": JsonField(JsonKind.TEXT, "The file."),
        "settings": JsonField(_SETTING, "The settings, by section.", is_list=True),
    },
)

_CHECK_EXAMPLES = """Examples:

\b
  rlm config check --config rlm.properties
  rlm config check --config rlm.properties --json

\b
Exit codes: 0 if `rlm run` accepts the file; 2 if not.
"""
_SHOW_EXAMPLES = """Examples:

\b
  rlm config show --changed --config rlm.properties
  rlm config show --config rlm.properties --json
"""

_Changed = Annotated[bool, typer.Option("--changed", help="Show only the settings in the file.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    config = typer.Typer(help="Check or show a configuration file.", no_args_is_help=True)
    config.callback()(_config)
    config.command("check", epilog=_CHECK_EXAMPLES)(_check)
    config.command("show", epilog=_SHOW_EXAMPLES)(_show)
    app.add_typer(config, name="config")


def _config() -> None:
    """Check or show a configuration file."""


def _check(*, config: ConfigOption, as_json: JsonOption = False) -> None:
    """Check a file as `rlm run` does; start nothing.

    Prints all problems of the file. If there are none, checks the log directories, the state
    directory, the directory of the store, plug-ins and TLS files of this host, with the rights of
    the user that runs the command. Connects to neither the cluster nor the store. Warnings name
    files and directories that are open to other users, and a nearly full disk of the state
    directory. They do not change the exit code.
    """
    problems = host_problems(config)
    warnings = () if problems else config_warnings(load_config(config), config)
    if as_json:
        with printing():
            typer.echo(json.dumps(check_document(config, problems, warnings), indent=2))
    else:
        for line in check_lines(problems, warnings):
            typer.echo(f"rlm: {line}", err=True)
        if not problems:
            with printing():
                typer.echo(f"{config}: ok")
    if problems:
        raise typer.Exit(2)


def _show(*, config: ConfigOption, changed: _Changed = False, as_json: JsonOption = False) -> None:
    """Show every setting with its value and its origin.

    Masks secrets, and all settings of plug-ins. The origin is a line of the file, or `default`.
    """
    with naming_config_check(config):
        found = effective_settings(config)
    settings = [each for each in found if not (changed and each.is_default)]
    with printing():
        if as_json:
            typer.echo(json.dumps(settings_json(config, settings), indent=2))
        else:
            for line in setting_lines(settings):
                sys.stdout.write(line + "\n")


def check_lines(problems: Iterable[InvalidConfigError], warnings: Iterable[str]) -> Iterator[str]:
    """Yield a line for each problem and each warning."""
    for problem in problems:
        yield " ".join(str(problem).split())
    for each in warnings:
        yield f"warning: {each}"


def config_warnings(
    config: Config,
    path: Path,
    nearly_full: Callable[[Path], TieredStorageError | None] = nearly_full_disk,
) -> Sequence[str]:
    """Return the warnings that `rlm run` logs at its start."""
    found = [
        f"{each.message} (key={each.key} path={each.path} mode={each.mode:04o})"
        for each in open_access(config, path)
    ]
    disk = nearly_full(config.host.state_dir)
    return found if disk is None else [*found, str(disk)]


def check_document(
    path: Path, problems: Sequence[InvalidConfigError], warnings: Iterable[str]
) -> Mapping[str, object]:
    """Return the result of a check for programs."""
    return {
        "file": str(path),
        "ok": not problems,
        "problems": [
            {
                "message": problem.message,
                "values": {name: str(value) for name, value in problem.context.items()},
            }
            for problem in problems
        ],
        "warnings": list(check_lines((), warnings)),
    }


def settings_json(path: Path, settings: Iterable[EffectiveSetting]) -> Mapping[str, object]:
    """Return the settings for programs."""
    return {"file": str(path), "settings": [each.to_json() for each in settings]}


def setting_lines(settings: Iterable[EffectiveSetting]) -> Iterator[str]:
    """Yield a line for each setting: the key, the value, and where the value comes from."""
    for each in settings:
        origin = "default" if each.is_default else f"line {each.line}"
        yield f"{each.key}={each.value}  ({origin})"
