"""The command lines that the jobs accept, without Spark."""

from __future__ import annotations

import importlib.metadata
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.audit.command import command_parser as audit_parser
from spark_tools.export.command import command_parser as export_parser
from spark_tools.invocation.arguments import given_options, require_known, shared_arguments
from spark_tools.repair.command import command_parser as repair_parser
from tests.unit.rlm.cli.golden_text import assert_golden

GOLDEN = Path(__file__).parent / "golden"
PARSERS = [audit_parser, export_parser, repair_parser]


def test_arguments_when_an_outcome_is_not_known_then_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        shared_arguments("rlm-x", "", example="rlm-x").parse_args(["--fail-on", "dataloss"])

    assert capsys.readouterr().err.endswith(
        "'dataloss' is not one of 'data-loss', 'failed-work', 'nothing-to-do', 'none'."
        " Did you mean 'data-loss'?\n"
    )


@pytest.mark.parametrize(
    ("parser", "option", "wrong"),
    [
        (audit_parser, "--objects-per-task", "0"),
        (audit_parser, "--grace-ms", "-1"),
        (repair_parser, "--batch", "0"),
        (repair_parser, "--max-attempts", "many"),
        (repair_parser, "--interval", "-5"),
        (repair_parser, "--interval", "500ms"),
        (repair_parser, "--timeout", "0"),
        (audit_parser, "--timeout", "3601"),
        (audit_parser, "--timeout", "50ms"),
        (audit_parser, "--timeout", "nan"),
        (audit_parser, "--timeout", "inf"),
        (audit_parser, "--price", "nan"),
        (audit_parser, "--price", "inf"),
        (audit_parser, "--price", "-0.01"),
        (audit_parser, "--price", "cheap"),
    ],
)
def test_arguments_when_a_number_makes_no_sense_then_reported_and_exit_code_2(
    parser: Callable[[], ArgumentParser],
    option: str,
    wrong: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An audit without expected objects would find nothing missing."""
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([f"{option}={wrong}"])

    assert ended.value.code == 2
    assert option in capsys.readouterr().err


def test_arguments_when_no_grace_is_wanted_then_none() -> None:
    assert audit_parser().parse_args(["--grace-ms", "0"]).grace_ms == 0


def test_arguments_when_durations_have_units_then_they_count() -> None:
    audit = audit_parser().parse_args(["--grace", "2d", "--timeout", "5m"])
    repair = repair_parser().parse_args(["--interval", "1h"])

    assert (audit.grace_ms, audit.timeout_ms, repair.interval) == (172_800_000, 300_000, 3_600)
    assert audit_parser().parse_args([]).timeout_ms == 60_000
    assert audit_parser().parse_args(["--timeout", "0.5"]).timeout_ms == 500


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (["--config", "own"], "own"),
        (["--option", "config=own"], "own"),
        ([], "named"),
        (["--option", "bootstrap.servers=a:1"], None),
        (["--bootstrap-server", "a:1"], None),
    ],
)
def test_options_when_the_host_has_a_file_then_it_is_read_unless_another_is_given(
    given: list[str], config: str | None, tmp_path: Path
) -> None:
    named = tmp_path / "named"
    named.touch()
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(given)

    values = given_options(arguments, {"RLM_CONFIG": str(named)})

    assert values.get("config") == (str(named) if config == "named" else config)
    assert ("bootstrap.servers" in values) == (config is None)


def test_options_when_a_file_and_a_broker_are_given_then_refused() -> None:
    """As in `rlm`: no job may act on another cluster than the one in its file."""
    given = ["--config", "own", "--bootstrap-server", "a:1"]
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(given)

    with pytest.raises(InvalidConfigError, match="exclude each other"):
        given_options(arguments, {})


@pytest.mark.parametrize("parser", PARSERS)
def test_help_when_asked_for_then_prints_the_reviewed_text(
    parser: Callable[[], ArgumentParser],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = []
    for option in ("-h", "--help"):
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([option])
        assert ended.value.code == 0
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]
    lines = [line.rstrip() for line in printed[0].splitlines()]
    assert lines[-1].startswith(f"Example: {parser().prog} ")
    assert_golden(f"{parser().prog}.txt", lines, golden=GOLDEN)


@pytest.mark.parametrize("parser", PARSERS)
def test_version_when_asked_for_then_the_jobs_name_and_the_version(
    parser: Callable[[], ArgumentParser], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--version"])

    assert ended.value.code == 0
    version = importlib.metadata.version("kafka-rlm")
    assert capsys.readouterr().out == f"{parser().prog} {version}\n"


def test_options_when_the_client_has_a_file_then_its_keys_are_the_clients(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SSL\nclient.id=a\nrsm.config.key.prefix=rlm\nssl.ca.location=of-file\n"
    )
    given = ["--bootstrap-server", "a:1", "--command-config", str(file)]
    given += ["--option", "client.ssl.ca.location=given"]

    values = given_options(shared_arguments("rlm-x", "", example="rlm-x").parse_args(given), {})

    assert values == {
        "bootstrap.servers": "a:1",
        "client.security.protocol": "SSL",
        "client.id": "a",
        "client.ssl.ca.location": "given",
        "rsm.config.key.prefix": "rlm",
    }


def test_options_when_the_client_has_a_file_and_no_broker_is_given_then_refused() -> None:
    arguments = shared_arguments("rlm-x", "", example="rlm-x").parse_args(["--command-config", "x"])

    with pytest.raises(InvalidConfigError, match="no effect without --bootstrap-server"):
        given_options(arguments, {})


def test_option_when_only_a_part_of_its_name_is_given_then_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A part of --delete must not delete."""
    with pytest.raises(SystemExit) as ended:
        audit_parser().parse_args(["--del"])

    assert ended.value.code == 2
    assert "No such option: --del" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "nearest"),
    [
        ("remote.orphan.grace", "remote.orphan.grace.ms"),
        ("rsm.config.key.prefx", "rsm.config.key.prefix"),
        ("RSM.config.key.prefix", "rsm.config.key.prefix"),
    ],
)
def test_options_when_no_job_reads_one_then_it_and_the_nearest_are_reported(
    option: str, nearest: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        require_known({"bootstrap.servers": "a:1", option: "x"})

    assert raised.value.context == {"option": option, "did_you_mean": nearest}


def test_options_when_an_unknown_one_is_like_none_then_none_is_suggested() -> None:
    with pytest.raises(InvalidConfigError) as raised:
        require_known({"verbose": "x"})

    assert raised.value.context == {
        "option": "verbose",
        "advice": "Remove it; docs/spark-jobs.md lists all options",
    }


def test_options_when_a_plug_in_reads_them_then_they_are_known(tmp_path: Path) -> None:
    config = tmp_path / "rlm.properties"
    config.write_text("rsm.config.storage.backend=acme.store:Tape\n")

    require_known({"config": str(config), "rsm.config.storage.drive": "x"})
    with pytest.raises(InvalidConfigError, match=r"option=rsm\.config\.layout\.label"):
        require_known({"config": str(config), "rsm.config.layout.label": "x"})


def test_options_when_they_are_the_clients_or_passed_on_then_they_are_not_judged() -> None:
    options = {"config": "x", "client.sasl.password": "hush", "kafka.sasl.jaas.config": "y"}

    require_known(options, passed_on=("kafka.",))
