from __future__ import annotations

from pathlib import Path

import pytest

from rsm.config.config_file import find_config_file, require_config_file
from rsm.segment.errors import InvalidConfigError


def _file(path: Path) -> Path:
    path.write_text("bootstrap.servers=a:1\n")
    return path


def test_file_when_the_variable_names_one_then_it_wins_over_the_systems(tmp_path: Path) -> None:
    named, system = _file(tmp_path / "named"), _file(tmp_path / "system")

    assert find_config_file({"RLM_CONFIG": str(named)}, system_config=system) == named


@pytest.mark.parametrize("environment", [{}, {"RLM_CONFIG": ""}])
def test_file_when_the_variable_is_unset_then_the_systems_if_it_exists(
    environment: dict[str, str], tmp_path: Path
) -> None:
    system = tmp_path / "system"
    assert find_config_file(environment, system_config=system) is None

    assert find_config_file(environment, system_config=_file(system)) == system


def test_file_when_the_variable_names_a_missing_one_then_the_error_says_who_named_it(
    tmp_path: Path,
) -> None:
    system, missing = _file(tmp_path / "system"), str(tmp_path / "missing")

    with pytest.raises(InvalidConfigError) as raised:
        find_config_file({"RLM_CONFIG": missing}, system_config=system)

    assert raised.value.context["file"] == missing
    assert "RLM_CONFIG" in str(raised.value.context["advice"])


def test_file_when_there_is_none_then_the_error_names_all_ways_to_give_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        require_config_file({}, system_config=tmp_path / "system", alternative="--brokers")

    for way in ("--config FILE", "RLM_CONFIG", str(tmp_path / "system"), "--brokers"):
        assert way in str(raised.value)
