"""What deploy/stack.sh reports where it cannot work, with fake engines."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

_SCRIPT = Path(__file__).resolve().parents[3] / "deploy" / "stack.sh"
_USUAL_PROGRAMS = ("sh", "dirname", "id", "tail", "sed", "mktemp", "rm", "cat", "sleep", "stat")
_IS_THERE = (
    'case "$*" in version*) echo 28.0 ;; *"image inspect"*) exit 0 ;; "compose version") ;; '
)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The only directory of the PATH: usual programs, and no engine yet."""
    for each in _USUAL_PROGRAMS:
        found = shutil.which(each)
        assert found is not None
        (tmp_path / each).symlink_to(found)
    return tmp_path


def _program(programs: Path, name: str, body: str) -> None:
    path = programs / name
    path.unlink(missing_ok=True)  # never write through the link to a usual program
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _refusal(
    programs: Path,
    *arguments: str,
    script: Path = _SCRIPT,
    environment: Mapping[str, str] = MappingProxyType({"DOCKER_HOST": "unix:///absent"}),
) -> str:
    done = subprocess.run(
        [script, *arguments],
        env={"PATH": str(programs), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("target", ["images", "up"])
def test_make_when_it_builds_or_starts_the_stack_then_runs_the_script_alone(target: str) -> None:
    done = subprocess.run(
        ["make", "-n", target, "SPARK=1"],
        cwd=_SCRIPT.parents[1],
        env={name: text for name, text in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["deploy/stack.sh", target]


def test_images_when_there_is_no_engine_then_names_what_to_install(programs: Path) -> None:
    refusal = _refusal(programs, "images")

    assert "cannot run containers: neither docker nor podman is on the PATH." in refusal
    assert "apt-get install podman docker-compose" in refusal


def test_packages_when_the_image_is_absent_then_says_how_to_build_it(programs: Path) -> None:
    _program(programs, "docker", 'case "$*" in version*) echo 28.0 ;; *) exit 1 ;; esac')

    refusal = _refusal(programs, "packages")

    assert "there is no such image. Build it: make images." in refusal


def test_up_when_the_engine_refuses_the_user_then_names_the_group(programs: Path) -> None:
    _program(programs, "docker", "echo 'permission denied while connecting' >&2; exit 1")

    refusal = _refusal(programs, "up")

    assert "may not use the engine" in refusal
    assert "usermod -aG docker" in refusal


def test_up_when_the_engine_is_stopped_then_says_how_to_start_it(programs: Path) -> None:
    _program(programs, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")

    refusal = _refusal(programs, "up")

    assert "no engine answers" in refusal
    assert "systemctl start docker" in refusal


def test_up_when_podman_may_not_make_a_user_namespace_then_names_user_ids_and_root(
    programs: Path,
) -> None:
    answer = "cannot clone: Operation not permitted\nError: cannot re-exec process"
    _program(programs, "podman", f'[ "$1" = version ] || echo "{answer}" >&2; exit 1')

    refusal = _refusal(programs, "up", environment={})

    assert "podman: Error: cannot re-exec process" in refusal
    assert "--add-subuids 100000-165535" in refusal
    assert "run make as root" in refusal
    assert "systemctl" not in refusal


def test_up_when_neither_engine_works_then_says_of_each_what_to_do(programs: Path) -> None:
    _program(programs, "docker", "echo 'permission denied while connecting' >&2; exit 1")
    _program(programs, "podman", "echo 'newuidmap: Operation not permitted' >&2; exit 1")

    refusal = _refusal(programs, "up", environment={})

    assert "usermod -aG docker" in refusal
    assert "--add-subuids" in refusal


def test_up_when_the_engine_of_the_checkout_has_ended_then_names_the_target_that_starts_it(
    programs: Path, tmp_path: Path
) -> None:
    _program(programs, "podman", "echo 'connection refused' >&2; exit 1")
    script = tmp_path / "deploy" / "stack.sh"
    script.parent.mkdir()
    shutil.copy2(_SCRIPT, script)
    socket_path = tmp_path / "build" / "containers" / "podman.sock"
    socket_path.parent.mkdir(parents=True)
    os.mknod(socket_path, stat.S_IFSOCK | 0o600)

    refusal = _refusal(programs, "up", script=script, environment={})

    assert "make containers-here" in refusal


def test_up_when_there_is_no_compose_then_names_the_plugin(programs: Path) -> None:
    _program(programs, "docker", 'case "$1" in version) echo 28.0 ;; *) exit 1 ;; esac')

    assert "docker-compose-plugin" in _refusal(programs, "up")


def test_up_when_there_is_only_podman_compose_then_refuses(programs: Path) -> None:
    _program(programs, "podman", 'case "$1" in version) echo 5.4 ;; *) exit 1 ;; esac')
    _program(programs, "podman-compose", "exit 0")

    assert "podman-compose does not suffice" in _refusal(programs, "up")


def test_up_when_podman_itself_runs_podman_compose_then_refuses(programs: Path) -> None:
    banner = ">>>> Executing external compose provider. Please see podman-compose(1)"
    _program(
        programs,
        "podman",
        f"""case "$*" in version*) echo 5.4 ;;
        *compose*) echo '{banner}' >&2; echo 'podman-compose version 1.3.0' ;; *) exit 1 ;; esac""",
    )

    assert "podman-compose does not suffice" in _refusal(programs, "up")


def test_up_when_podman_runs_compose_without_a_socket_then_says_how_to_start_it(
    programs: Path,
) -> None:
    banner = ">>>> Executing external compose provider. Please see podman-compose(1)"
    _program(
        programs,
        "podman",
        f"""case "$*" in version*) echo 5.4 ;; *RemoteSocket*) echo /absent/podman.sock ;;
        *compose*) echo '{banner}' >&2; echo 'Docker Compose version v2.40.0' ;; esac""",
    )

    refusal = _refusal(programs, "up", environment={})

    assert "podman has no socket at /absent/podman.sock" in refusal
    assert "systemctl --user start podman.socket" in refusal


@pytest.mark.parametrize(("address", "warns"), [("127.0.0.2", False), ("192.0.2.1", True)])
def test_up_when_other_hosts_reach_the_gateways_then_warns(
    programs: Path, address: str, *, warns: bool
) -> None:
    _program(programs, "docker", f"{_IS_THERE} *up*) exit 1 ;; esac")

    environment = {"DOCKER_HOST": "unix:///absent", "BIND_ADDRESS": address}
    refusal = _refusal(programs, "up", environment=environment)
    assert (f"other hosts reach the gateways at {address}, without TLS" in refusal) is warns


def test_images_when_another_base_image_is_named_then_builds_on_it(programs: Path) -> None:
    _program(programs, "docker", f'{_IS_THERE} build*) echo "$*" >&2; exit 1 ;; esac')

    environment = {"DOCKER_HOST": "unix:///absent", "PYTHON_IMAGE": "example.com/python:3.11"}
    refusal = _refusal(programs, "images", environment=environment)
    assert "--build-arg PYTHON_IMAGE=example.com/python:3.11" in refusal


def test_up_when_the_image_is_missing_then_names_the_target_that_builds_it(programs: Path) -> None:
    _program(
        programs,
        "docker",
        'case "$*" in version*) echo 28.0 ;; image*) exit 1 ;; *) exit 0 ;; esac',
    )

    refusal = _refusal(programs, "up")

    assert "the image localhost/kafka-rlm:latest is missing. Build it:\nmake images\n" in refusal


def test_up_when_the_image_of_spark_is_missing_then_names_the_target_that_builds_it(
    programs: Path,
) -> None:
    _program(
        programs,
        "docker",
        'case "$*" in version*) echo 28.0 ;; image*-spark:*) exit 1 ;; *) exit 0 ;; esac',
    )

    environment = {"DOCKER_HOST": "unix:///absent", "SPARK": "1"}
    refusal = _refusal(programs, "up", environment=environment)

    assert "the image localhost/kafka-rlm-spark:latest is missing." in refusal
    assert "make images SPARK=1" in refusal


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("bind: address already in use", "BIND_ADDRESS=127.0.0.2 make up"),
        ("listen tcp 127.0.0.1:9090: bind: address already in use", "PROMETHEUS_PORT=9091"),
        ("Bind for 127.0.0.1:3000 failed: port is already allocated", "GRAFANA_PORT=3001"),
        ("Bind for 127.0.0.1:19092 failed: port is already allocated", "ss -ltnp"),
        ("Bind for 127.0.0.1:19092 failed: port is already allocated", "127.0.0.2 rlm-1 rlm-2"),
        ("range of CPUs is from 0.01 to 1.00, as only 1 CPUs available", "CPUS=1 make up"),
        ("the requested cgroup controller `cpu` is not available", "CPUS=0 make up"),
        ("manifest unknown: apache/kafka", "make containers-here"),
        ('failed to resolve reference "docker.io/apache/kafka:4.3.1"', "KAFKA_IMAGE="),
        ('failed to do request: Head "https://192.0.2.1/v2/": i/o timeout', "KAFKA_IMAGE="),
        ("dial tcp: lookup registry-1.docker.io: no such host", "make containers-here"),
        ("container kafka-rlm_broker-1_1 is unhealthy", "compose logs"),
    ],
)
def test_up_when_compose_fails_then_prints_its_message_and_a_way_out(
    programs: Path, message: str, advice: str
) -> None:
    (programs / "message").write_text(message)
    _program(programs, "docker", f"{_IS_THERE} *up*) cat '{programs}/message' >&2; exit 1 ;; esac")

    refusal = _refusal(programs, "up")

    assert message in refusal
    assert advice in refusal


@pytest.mark.parametrize(
    ("variables", "passed"),
    [
        ({"MONITORING": "1"}, "compose --profile cluster --profile monitoring up"),
        ({"SPARK": "1"}, "compose --profile cluster --profile spark up"),
        ({"MONITORING": "", "SPARK": ""}, "compose --profile cluster up"),
    ],
)
def test_up_when_a_profile_is_asked_for_then_starts_its_services_too(
    programs: Path, variables: dict[str, str], passed: str
) -> None:
    _program(programs, "docker", f'{_IS_THERE} *up*) echo "$*" >&2; exit 1 ;; esac')

    environment = {"DOCKER_HOST": "unix:///absent", **variables}
    assert passed in _refusal(programs, "up", environment=environment)


@pytest.mark.parametrize("variable", ["MONITORING", "SPARK"])
def test_up_when_other_services_are_named_with_a_profile_then_refuses_and_starts_nothing(
    programs: Path, variable: str
) -> None:
    _program(programs, "docker", f'{_IS_THERE} *up*) echo "$*" >"${{0%/*}}/started" ;; esac')

    environment = {"DOCKER_HOST": "unix:///absent", variable: "1"}
    refusal = _refusal(programs, "up", "quickstart", environment=environment)

    assert "SERVICES=quickstart names other services. Leave out SERVICES" in refusal
    assert not (programs / "started").exists()


def test_up_when_options_of_compose_are_given_with_a_profile_then_passes_them_on(
    programs: Path,
) -> None:
    _program(programs, "docker", f'{_IS_THERE} *up*) echo "$*" >&2; exit 1 ;; esac')

    environment = {"DOCKER_HOST": "unix:///absent", "SPARK": "1"}
    refusal = _refusal(programs, "up", "--scale", "spark-worker=2", environment=environment)

    assert "compose --profile cluster --profile spark up -d --scale spark-worker=2" in refusal


@pytest.mark.parametrize(
    ("message", "log"),
    [
        ('container "kafka-rlm-broker-1-1" is unhealthy', "AccessDeniedException: /var/lib/kafka"),
        (
            "dependency failed to start: container kafka-rlm-broker-1-1 is unhealthy",
            "mkdir: Permission denied",
        ),
        (
            "dependency failed to start: container kafka-rlm-broker-1-1 exited (1)",
            "mkdir: Permission denied",
        ),
    ],
)
def test_up_when_a_broker_may_not_use_its_volume_then_names_user_owner_and_remedy(
    programs: Path, tmp_path: Path, message: str, log: str
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o700)
    _program(
        programs,
        "docker",
        f"""{_IS_THERE} *up*) echo '{message}' >&2; exit 1 ;;
        "logs --tail 50 kafka-rlm-broker-1-1") echo '{log}' ;;
        *Config.User*kafka-rlm-broker-1-1) echo 10001:10001 ;;
        *Mounts*kafka-rlm-broker-1-1) echo {volume} ;; esac""",
    )

    _assert_names_the_volume(_refusal(programs, "up"), volume)


def test_up_when_rlm_may_not_use_its_volume_then_names_user_owner_and_remedy(
    programs: Path, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o700)
    log = "rlm: cannot use the state directory: Permission denied (key=state.dir)"
    _program(programs, "sleep", "exit 0")
    _program(
        programs,
        "docker",
        f"""{_IS_THERE} *up*) ;; *exec*) exit 1 ;; *"ps -a -q quickstart") echo c0ffee ;;
        "logs --tail 50 c0ffee" | *"logs --tail 5 quickstart") echo '{log}' ;;
        *Config.User*c0ffee) echo 10001:10001 ;; *Mounts*c0ffee) echo {volume} ;; esac""",
    )

    refusal = _refusal(programs, "up", "quickstart")

    assert log in refusal
    _assert_names_the_volume(refusal, volume)


@pytest.mark.parametrize(
    ("mode", "has_selinux", "advice"),
    [
        (0o600, False, "chmod -R go+rX deploy"),
        (0o644, True, "chcon -t container_file_t deploy/compose/s3-credentials"),
    ],
)
def test_up_when_a_container_may_not_read_the_checkout_then_names_the_remedy(
    programs: Path, tmp_path: Path, *, mode: int, has_selinux: bool, advice: str
) -> None:
    mounted = tmp_path / "deploy" / "compose" / "rlm-1.properties"
    mounted.parent.mkdir(parents=True)
    mounted.touch()
    mounted.chmod(mode)
    script = tmp_path / "deploy" / "stack.sh"
    shutil.copy2(_SCRIPT, script)
    _program(programs, "selinuxenabled", f"exit {int(not has_selinux)}")
    _program(
        programs,
        "docker",
        f"""{_IS_THERE} *up*) echo 'container "c" is unhealthy' >&2; exit 1 ;;
        *logs*) echo 'Permission denied' ;; *Mounts*) echo {mounted} ;; esac""",
    )

    advised = _refusal(programs, "up", script=script).splitlines()

    remedies = [each for each in advised if "chmod" in each or "chcon" in each]
    assert len(remedies) == 1
    assert advice in remedies[0]


def test_up_when_a_service_is_not_ready_then_prints_its_log_and_where_to_look(
    programs: Path,
) -> None:
    _program(programs, "sleep", "exit 0")
    _program(
        programs,
        "docker",
        f"""{_IS_THERE} *up*) ;; *exec*) exit 1 ;; *" -q quickstart") echo c0ffee ;;
        *logs*) echo "waiting for the broker" ;; esac""",
    )

    assert _refusal(programs, "up", "quickstart").splitlines() == [
        "cannot start the stack: quickstart is not ready after 2 minutes:",
        "waiting for the broker",
        "Its state: deploy/stack.sh compose exec quickstart rlm processes",
    ]


def _assert_names_the_volume(refusal: str, volume: Path) -> None:
    owner = volume.stat()
    assert "The user of its image is 10001:10001" in refusal
    assert f"{volume}: owner {owner.st_uid}:{owner.st_gid}, mode 700" in refusal
    assert "chown -R 10001:10001" in refusal
    assert "setfacl -R -m u:10001:rX,d:u:10001:rX" in refusal
