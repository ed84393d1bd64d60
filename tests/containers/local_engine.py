"""`make containers-here`: Podman on a Debian machine that reaches no image registry.

If no engine answers, the container tests set this one up and end it themselves.
It starts Podman's service on a socket below build/containers, and makes images that replace the
official ones under their own names: Debian by debootstrap, Python by Debian's packages, Kafka and
Hadoop from their Maven artifacts, versitygw and fake-gcs-server from their Go modules, Azurite from
its npm package. `deploy/stack.sh` finds the socket by itself.

    python -m tests.containers.local_engine up      # packages, service, images; skips what is there
    python -m tests.containers.local_engine serve   # the service and health checks, until SIGTERM
    python -m tests.containers.local_engine down    # end all containers and the service
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.containers.bridges import keep_bridge_addresses
from tests.containers.health_checks import run_health_checks
from tests.containers.stand_ins.images import OF_OTHER_SERVICES, OF_THE_STACK, StandIn, build
from tests.services.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
ROOM = CHECKOUT / "build" / "containers"
SOCKET = ROOM / "podman.sock"
_PROCESS_ID = ROOM / "service.pid"
_SERVICE_LOG = ROOM / "service.log"
_PACKAGES = (
    *("podman", "runc", "crun", "netavark", "aardvark-dns", "debootstrap", "iptables"),
    *("ca-certificates", "docker-compose"),
)
_CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
_STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{room}/storage"
runroot = "{room}/run"
"""
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_GROUP_OF_CONTAINERS = "libpod_parent"


class SetUpError(Exception):
    """The engine cannot be set up; the message names the reason and the way out."""


def main() -> int:
    """Run the command of this command line."""
    commands = {
        "up": lambda: _up((*OF_THE_STACK, *OF_OTHER_SERVICES)),
        "serve": _serve,
        "down": _down,
    }
    command = commands.get(" ".join(sys.argv[1:]))
    if command is None:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        command()
    except (SetUpError, subprocess.CalledProcessError, OSError) as error:
        print(f"cannot set up containers: {error}", file=sys.stderr)
        return 1
    return 0


def environment() -> dict[str, str]:
    """Return the environment in which `podman` uses the engine of this checkout."""
    without_other_engines = {
        name: value
        for name, value in os.environ.items()
        if name not in {"CONTAINER_HOST", "DOCKER_HOST"}
    }
    return {
        **without_other_engines,
        "CONTAINERS_CONF": str(ROOM / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(ROOM / "storage.conf"),
        "DISABLE_HC_SYSTEMD": "true",
    }


def can_be_set_up() -> bool:
    """Return whether this process may install Debian's packages and make networks."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _up(images: Iterable[StandIn]) -> None:
    if not can_be_set_up():
        raise SetUpError(
            "this needs Debian and root, for its packages, debootstrap and networks."
            " Run it as root on Debian, or use an engine that reaches a registry."
        )
    absent = [str(path) for each in images for path in each.context if not path.exists()]
    if absent:
        raise SetUpError(f"{', '.join(absent)} is missing. Make it: make containers-here")
    _install_missing_packages()
    ROOM.mkdir(parents=True, exist_ok=True)
    (ROOM / "containers.conf").write_text(_CONTAINERS_CONF)
    (ROOM / "storage.conf").write_text(_STORAGE_CONF.format(room=ROOM))
    if not _is_serving():
        _start_service()
    _weigh_containers()
    build(images, environment())
    print(f"containers: ready at unix://{SOCKET}")


def _install_missing_packages() -> None:
    status = [
        "dpkg-query",
        "--show",
        "--showformat",
        "${Package} ${db:Status-Status}\n",
        *_PACKAGES,
    ]
    # dpkg-query fails if it does not know one of the packages.
    known = subprocess.run(status, capture_output=True, text=True, check=False).stdout.splitlines()
    missing = [each for each in _PACKAGES if f"{each} installed" not in known]
    if not missing:
        return
    print("Installing", *missing, flush=True)
    apt_get = ["apt-get", "--quiet=2", "--option", "DPkg::Lock::Timeout=300"]
    install = ["install", "--yes", "--no-install-recommends"]
    keep_configurations = ["--option", "Dpkg::Options::=--force-confold"]
    _run_unattended([*apt_get, "update"])
    _run_unattended([*apt_get, *keep_configurations, *install, *missing])


def _run_unattended(command: list[str]) -> None:
    """Run a command that cannot prompt; its errors go to this process's standard error."""
    subprocess.run(
        command,
        check=True,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _weigh_containers() -> None:
    """Give all containers together the share of eight threads of other processes.

    By default their group has at most the share of one thread, too little for a cluster.
    """
    if (_CONTROL_GROUPS / "cgroup.controllers").exists():  # version 2
        group, name, of_one = _CONTROL_GROUPS / _GROUP_OF_CONTAINERS, "cpu.weight", 100
    else:
        group, name, of_one = _CONTROL_GROUPS / "cpu" / _GROUP_OF_CONTAINERS, "cpu.shares", 1024
    if group.parent.is_dir():
        group.mkdir(exist_ok=True)
    if (group / name).exists():
        (group / name).write_text(str(8 * of_one))


def _is_serving() -> bool:
    asked = ["podman", "--remote", "--url", f"unix://{SOCKET}", "version"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _start_service() -> None:
    with _SERVICE_LOG.open("ab") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.containers.local_engine", "serve"],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _PROCESS_ID.write_text(str(server.pid))
    wait_until(_is_serving, describe=f"Podman's service answers; its log is {_SERVICE_LOG}")


def _serve() -> None:
    """Serve, and run the health checks that Podman leaves to systemd, which may be absent."""
    SOCKET.unlink(missing_ok=True)
    command = ["podman", "system", "service", "--time=0", f"unix://{SOCKET}"]
    with subprocess.Popen(command, env=environment()) as service:
        signal.signal(signal.SIGTERM, lambda *_: service.terminate())
        run_health_checks(
            SOCKET,
            is_running=lambda: service.poll() is None,
            in_each_round=keep_bridge_addresses,
        )
    SOCKET.unlink(missing_ok=True)


def _down() -> None:
    if not (ROOM / "storage.conf").exists():
        return
    remove = ["podman", "rm", "--force", "--all", "--time", "0"]
    subprocess.run(remove, check=True, env=environment(), stdout=subprocess.DEVNULL)
    if _is_serving() and _PROCESS_ID.exists():
        os.kill(int(_PROCESS_ID.read_text()), signal.SIGTERM)
        wait_until(lambda: not _is_serving(), describe="Podman's service has ended")
    _PROCESS_ID.unlink(missing_ok=True)
    # Podman mounts this directory on itself; a mount point cannot be removed.
    subprocess.run(["umount", str(ROOM / "storage" / "overlay")], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
