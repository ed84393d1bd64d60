from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rlm.cli.stores import plugins

METADATA = "Metadata-Version: 2.1\nName: acme-tape\nVersion: 1.5\n"
ENTRY_POINTS = """
[kafka_rlm.storage]
tape = acme_tape.store:Tape
[kafka_rlm.layout]
packed = acme_tape.layout:Packed
[console_scripts]
tape = acme_tape.main:main
"""


def rlm_plugins(*arguments: str) -> str:
    app = typer.Typer()
    plugins.register(app)
    app.callback()(lambda: None)
    done = CliRunner().invoke(app, ["plugins", *arguments])
    assert done.exit_code == 0, done.exception
    return done.stdout


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution whose package cannot be imported."""
    directory = tmp_path / "acme_tape-1.5.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text(METADATA)
    (directory / "entry_points.txt").write_text(ENTRY_POINTS)
    package = tmp_path / "acme_tape"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_list_when_none_is_installed_then_says_so() -> None:
    assert rlm_plugins("list") == "no stores or layouts are installed as plug-ins\n"
    assert json.loads(rlm_plugins("list", "--json")) == {"plugins": []}


@pytest.mark.usefixtures("tape")
def test_list_when_a_plug_in_cannot_be_imported_then_it_is_listed_all_the_same() -> None:
    assert json.loads(rlm_plugins("list", "--json")) == {
        "plugins": [
            {
                "kind": "storage",
                "name": "tape",
                "class": "acme_tape.store:Tape",
                "distribution": "acme-tape",
                "version": "1.5",
            },
            {
                "kind": "layout",
                "name": "packed",
                "class": "acme_tape.layout:Packed",
                "distribution": "acme-tape",
                "version": "1.5",
            },
        ]
    }


@pytest.mark.usefixtures("tape")
def test_list_when_printed_for_people_then_each_class_can_be_copied() -> None:
    lines = [line.split() for line in rlm_plugins("list").splitlines()]

    assert lines == [
        ["kind", "name", "class", "distribution", "version"],
        ["storage", "tape", "acme_tape.store:Tape", "acme-tape", "1.5"],
        ["layout", "packed", "acme_tape.layout:Packed", "acme-tape", "1.5"],
    ]
