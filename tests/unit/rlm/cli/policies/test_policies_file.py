"""What a file of policies sets, and where its errors are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rlm.cli.policies.apply import register, require_prunable
from rlm.cli.policies.policies_file import SETTING_FORMS, read_policies
from rlm.cli.policies_schema import render
from rlm.policy.topic.topic_policy import OffloadModeFlag, PolicyFlags
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OffloadMode

TOPIC_ERROR = "the key is not a topic name: patterns belong below `patterns`"
SCHEMA = Path("docs/policies.schema.json")


def levels(tmp_path: Path, text: str) -> tuple[PolicyLevel, ...]:
    path = tmp_path / "policies.yaml"
    path.write_text(text)
    return read_policies(path).levels


def topics(tmp_path: Path, text: str) -> dict[str, PolicyFlags]:
    path = tmp_path / "policies.yaml"
    path.write_text(text)
    return {each.topic: each.flags for each in read_policies(path).topics}


def refusal(tmp_path: Path, text: str) -> dict[str, Any]:
    """Return the message and the values of the error, without the file's path."""
    with pytest.raises(InvalidConfigError) as refused:
        levels(tmp_path, text)
    context = {name: value for name, value in refused.value.context.items() if name != "file"}
    return {"message": refused.value.message, **context}


def test_file_when_read_then_has_every_setting_of_patterns_and_of_the_default(
    tmp_path: Path,
) -> None:
    found = levels(
        tmp_path,
        """
default:
  local_retention_ms: 1h
patterns:
  orders-*:
    retention_ms: 30d
    retention_bytes: -1
    local_retention_ms: 0
    local_retention_bytes: -2
    copy_lag_ms: 5m
    copy_lag_bytes: 1MiB
    copy_lag_since: roll
    outage_policy: shed
    local_deletion_lag_ms: 7
    offload_mode: stream
    offload_segment_max_bytes: "1GiB"
    offload_segment_rollover_ms: 10m
    layout: rlm_example.layout:LabeledLayout
""",
    )

    assert found == (
        PolicyLevel(pattern="", local_retention_ms=3_600_000),
        PolicyLevel(
            pattern="orders-*",
            retention_ms=2_592_000_000,
            retention_bytes=-1,
            local_retention_ms=0,
            local_retention_bytes=-2,
            copy_lag_ms=300_000,
            copy_lag_bytes=1 << 20,
            copy_lag_since=CopyLagSince.ROLL,
            outage_policy=OutagePolicy.SHED_OLDEST,
            local_deletion_lag_ms=7,
            offload_mode=OffloadMode.STREAM,
            offload_segment_max_bytes=1 << 30,
            offload_segment_rollover_ms=600_000,
            layout="rlm_example.layout:LabeledLayout",
        ),
    )
    assert found[1].values.keys() == set(PolicySetting)


def test_copy_lag_when_its_start_is_left_open_then_as_of_the_option(tmp_path: Path) -> None:
    """As with `rlm policy set --copy-lag-ms`: a level that gives a lag also gives its start."""
    (found,) = levels(tmp_path, "default: {copy_lag_ms: 5}")

    assert found.copy_lag_since is CopyLagSince.NEWEST_RECORD


def test_topics_when_read_then_have_the_given_settings_and_inherit_all_others(
    tmp_path: Path,
) -> None:
    """Topics do not inherit the total retention, because another level may have a lower one."""
    found = topics(
        tmp_path,
        "topics:\n  a.b_c-1: {retention_ms: 1h, offload_mode: stream, copy_lag_ms: 5}\n  b:\n",
    )

    retention = frozenset({PolicySetting.RETENTION_MS, PolicySetting.RETENTION_BYTES})
    given = frozenset(
        {PolicySetting.OFFLOAD_MODE, PolicySetting.COPY_LAG_MS, PolicySetting.COPY_LAG_SINCE}
    )
    assert found == {
        "a.b_c-1": PolicyFlags(
            retention_ms=3_600_000,
            offload_mode=OffloadModeFlag.STREAM,
            copy_lag_ms=5,
            copy_lag_since=CopyLagSince.NEWEST_RECORD,
            inherit=frozenset(PolicySetting) - retention - given,
        ),
        "b": PolicyFlags(inherit=frozenset(PolicySetting) - retention),
    }


def test_topics_when_read_then_each_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text("topics:\n  a:\n\n  b:\n")

    assert [(each.topic, each.line) for each in read_policies(path).topics] == [("a", 2), ("b", 4)]


@pytest.mark.parametrize("text", ["", "# nothing\n", "default:\n", "patterns: {}\n", "{}"])
def test_file_when_it_sets_nothing_then_is_accepted(tmp_path: Path, text: str) -> None:
    assert all(each.values == {} for each in levels(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "default:\n  retention_m: 1\n",
            {
                "message": "the key is unknown",
                "line": 2,
                "column": 3,
                "did_you_mean": "retention_ms",
            },
        ),
        ("defaults:\n", {"message": "the key is unknown", "line": 1, "column": 1}),
        ("x: 1\n", {"message": "the key is unknown", "line": 1, "key": "x"}),
        (
            "default:\n  retention_ms: 1\n  retention_ms: 2\n",
            {"message": "the key occurs twice", "line": 3, "column": 3},
        ),
        (
            "patterns:\n  a*: {}\n  a*: {}\n",
            {"message": "the key occurs twice", "line": 3, "column": 3},
        ),
        ("topics:\n  a*: {}\n", {"message": TOPIC_ERROR, "line": 2, "column": 3}),
        ("topics:\n  a: {}\n  a: {}\n", {"message": "the key occurs twice", "line": 3}),
        ("topics: {a: {retention: 1d}}\n", {"message": "the key is unknown", "key": "retention"}),
        (
            "patterns:\n  a b: {}\n",
            {
                "message": "the pattern is invalid: its length or a character is not allowed",
                "line": 2,
            },
        ),
        (
            "default:\n  retention_ms: soon\n",
            {"message": "the value is invalid", "line": 2, "column": 17, "key": "retention_ms"},
        ),
        ("default: {offload_mode: inherit}\n", {"message": "the value is invalid", "line": 1}),
        ("default: {layout: blocks}\n", {"message": "the value is invalid", "key": "layout"}),
        (
            "default: {outage_policy: shd}\n",
            {"message": "the value is invalid", "did_you_mean": "shed"},
        ),
        ("default: {local_deletion_lag_ms: -1}\n", {"message": "the value is invalid"}),
        ("default: {offload_segment_max_bytes: 1023}\n", {"message": "the value is invalid"}),
        (
            "default: {retention_ms: }\n",
            {"message": "the value is missing, a list or a mapping", "key": "retention_ms"},
        ),
        (
            "default: {retention_ms: [1]}\n",
            {"message": "the value is missing, a list or a mapping"},
        ),
        ("- default\n", {"message": "the value is not a mapping of keys to values", "line": 1}),
        ("default: 5\n", {"message": "the value is not a mapping of keys to values", "column": 10}),
        ("? [a]\n: 1\n", {"message": "a key is not text"}),
        ("default: {\n", {"message": "the file is not valid YAML", "line": 2, "column": 1}),
        ("a: &x {b: *y}\n", {"message": "the file is not valid YAML", "line": 1}),
        ("\x00", {"message": "the file is not valid YAML"}),
    ],
)
def test_file_when_something_in_it_is_wrong_then_is_refused_with_its_place(
    tmp_path: Path, text: str, expected: dict[str, Any]
) -> None:
    found = refusal(tmp_path, text)

    assert found.items() >= expected.items()


_LINE = "default:\n  retention_ms: "


@pytest.mark.parametrize(
    ("data", "reason", "column"),
    [
        (b"default:\n  \xff: 1\n", "not utf-8: invalid start byte", 3),
        (b"\xef\xbb\xbfdefault:\n  \xff: 1\n", "not utf-8: invalid start byte", 3),
        (f"{_LINE}1d".encode("utf-16")[:-1], "not utf-16-le: truncated data", 18),
        (f"{_LINE}1d\0".encode(), "the character '\\x00' is not allowed", 19),
        (f"{_LINE}\x07".replace("\n", "\r\n").encode(), "the character '\\x07' is not allowed", 17),
    ],
)
def test_file_when_a_character_is_wrong_then_is_refused_with_its_line_and_column(
    tmp_path: Path, data: bytes, reason: str, column: int
) -> None:
    path = tmp_path / "policies.yaml"
    path.write_bytes(data)

    with pytest.raises(InvalidConfigError, match="not valid YAML") as refused:
        read_policies(path)

    context = refused.value.context
    assert (context["reason"], context["line"], context["column"]) == (reason, 2, column)


def test_file_when_it_is_nested_deeply_then_is_refused_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, "[" * 300_000)["line"] == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_file_when_it_has_an_encoding_of_yaml_then_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "policies.yaml"
    path.write_bytes(f"{_LINE}1d\n".encode(encoding))

    assert read_policies(path).levels == (PolicyLevel(pattern="", retention_ms=86_400_000),)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n...\n", "patterns:\n", "default: ~\n", "topics: {}\n"]
)
def test_prune_when_the_file_names_no_level_then_is_refused(tmp_path: Path, text: str) -> None:
    """A truncated or empty file must not delete all policies."""
    path = tmp_path / "policies.yaml"
    path.write_text(text)

    with pytest.raises(InvalidConfigError, match="--prune would delete all policies") as refused:
        require_prunable(read_policies(path), path)

    assert "`patterns: {}`" in str(refused.value)


@pytest.mark.parametrize("text", ["patterns: {}\n", "default: {}\n", "patterns:\n  a*: {}\n"])
def test_prune_when_the_file_names_levels_then_is_accepted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(text)

    require_prunable(read_policies(path), path)


def test_prune_command_when_the_file_is_empty_then_is_refused_before_the_cluster_is_asked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text("")

    app = typer.Typer()
    register(app)
    app.callback()(lambda: None)
    done = CliRunner().invoke(
        app, ["apply", "-f", str(path), "--prune", "--yes", "--bootstrap-server", "localhost:1"]
    )

    assert isinstance(done.exception, InvalidConfigError)
    assert "--prune would delete all policies" in str(done.exception)


def test_file_when_it_is_missing_or_too_large_then_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="cannot read the file"):
        read_policies(tmp_path / "missing.yaml")
    assert (
        refusal(tmp_path, "#" * (1 << 20) + "\n")["message"]
        == "cannot read the file: it is too large"
    )


def test_forms_when_compared_with_settings_then_there_is_one_for_each() -> None:
    assert SETTING_FORMS.keys() == set(PolicySetting)


def test_schema_when_compared_with_the_page_then_is_up_to_date() -> None:
    """`make docs` writes the schema."""
    assert SCHEMA.read_text() == render()


def test_schema_when_it_describes_a_setting_then_names_its_choices() -> None:
    settings = json.loads(render())["$defs"]["settings"]["properties"]

    assert settings["offload_mode"]["enum"] == ["segment", "stream"]
    assert settings["outage_policy"]["enum"] == ["hold", "shed"]
    assert settings["layout"]["type"] == "string"
