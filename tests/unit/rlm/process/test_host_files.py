"""Checks of files before anything is created: on a wrong host nothing changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.app.startup_checks import HOST_CHECKS
from rlm.config.load import Config, load_config
from rlm.process.host_check import check_host, directory_problems
from rlm.process.state_dir import locked_state_dir
from rsm.segment.errors import HostNotReadyError, InvalidConfigError


def _log_dir(path: Path, *, node_id: int = 1) -> Path:
    path.mkdir()
    (path / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node_id}\n")
    return path


def _config(tmp_path: Path, log_dirs: list[Path], **changes: Path | str) -> Config:
    root = tmp_path / "store"
    root.mkdir(exist_ok=True)
    entries = {
        "bootstrap.servers": "a:1",
        "log.dirs": ",".join(map(str, log_dirs)),
        "state.dir": changes.get("state", tmp_path / "state"),
        "rsm.config.storage.filesystem.root": changes.get("root", root),
        "rsm.config.layout": changes.get("layout", "raw"),
    }
    path = tmp_path / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    return load_config(path)


def test_check_host_when_all_is_there_then_returns_the_broker(tmp_path: Path) -> None:
    config = _config(tmp_path, [_log_dir(tmp_path / "a"), _log_dir(tmp_path / "b")])

    identity = check_host(config)

    assert (identity.node_id, identity.cluster_id) == (1, "c")
    assert not (tmp_path / "state").exists()


def test_check_host_when_log_dir_missing_then_names_setting_and_path(tmp_path: Path) -> None:
    config = _config(tmp_path, [_log_dir(tmp_path / "a"), tmp_path / "absent"])

    with pytest.raises(
        HostNotReadyError, match=r"key=log\.dirs, path=.*absent.*rlm can start once"
    ):
        check_host(config)


def test_check_host_when_store_root_missing_then_does_not_make_it(tmp_path: Path) -> None:
    config = _config(tmp_path, [_log_dir(tmp_path / "a")], root=tmp_path / "absent")

    with pytest.raises(HostNotReadyError, match=r"filesystem\.root, path=.*absent"):
        check_host(config)

    assert not (tmp_path / "absent").exists()


def test_checks_when_a_plug_in_is_missing_and_the_broker_not_formatted_then_name_the_plug_in(
    tmp_path: Path,
) -> None:
    """A retry can help a host that is not ready yet, but not a wrong configuration."""
    config = _config(tmp_path, [tmp_path / "absent"], layout="absent.package:Layout")

    def check() -> None:
        for each in HOST_CHECKS:
            each(config)

    with pytest.raises(InvalidConfigError, match=r"absent\.package") as refused:
        check()

    assert not isinstance(refused.value, HostNotReadyError)


def test_directory_problems_when_several_directories_are_unusable_then_returns_all(
    tmp_path: Path,
) -> None:
    absent = [tmp_path / "absent1", tmp_path / "absent2"]
    (tmp_path / "file").touch()
    state = tmp_path / "file" / "state"
    config = _config(
        tmp_path,
        [_log_dir(tmp_path / "a"), *absent],
        state=state,
        root=tmp_path / "unmounted",
    )

    problems = directory_problems(config)

    found = [
        (each.context["key"], each.context.get("path", each.context.get("found")))
        for each in problems
    ]
    assert found == [
        ("log.dirs", absent[0]),
        ("log.dirs", absent[1]),
        ("rsm.config.storage.filesystem.root", tmp_path / "unmounted"),
        ("state.dir", state),
    ]
    assert "Mount or create it: rlm does not create it, and can start once it exists." in str(
        problems[2]
    )
    assert all("advice" in each.context for each in problems)


def test_directory_problems_when_only_the_brokers_differ_then_is_the_first_error_of_check_host(
    tmp_path: Path,
) -> None:
    config = _config(tmp_path, [_log_dir(tmp_path / "a"), _log_dir(tmp_path / "b", node_id=2)])

    (problem,) = directory_problems(config)

    with pytest.raises(InvalidConfigError) as caught:
        check_host(config)
    assert str(problem) == str(caught.value)


def test_check_host_when_log_dirs_of_two_brokers_then_refuses(tmp_path: Path) -> None:
    dirs = [_log_dir(tmp_path / "a"), _log_dir(tmp_path / "b", node_id=2)]

    with pytest.raises(InvalidConfigError, match="different brokers"):
        check_host(_config(tmp_path, dirs))


def test_check_host_when_state_dir_is_within_a_log_dir_then_refuses(tmp_path: Path) -> None:
    log_dir = _log_dir(tmp_path / "a")

    with pytest.raises(InvalidConfigError, match=r"key=state\.dir"):
        check_host(_config(tmp_path, [log_dir], state=log_dir / "rlm"))


def test_locked_state_dir_when_locked_then_refuses_a_second_holder(tmp_path: Path) -> None:
    with (
        locked_state_dir(tmp_path / "state"),
        pytest.raises(HostNotReadyError, match="another rlm run or rlm gateway uses"),
        locked_state_dir(tmp_path / "state"),
    ):
        pass


def test_locked_state_dir_when_released_then_can_be_locked_again(tmp_path: Path) -> None:
    with locked_state_dir(tmp_path / "state"):
        pass

    with locked_state_dir(tmp_path / "state") as path:
        assert path.is_dir()


def test_locked_state_dir_when_it_cannot_be_made_then_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with (
        pytest.raises(InvalidConfigError, match="cannot use the state directory"),
        locked_state_dir(tmp_path / "file" / "state"),
    ):
        pass
