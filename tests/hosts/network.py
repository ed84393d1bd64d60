"""Hosts of a test on one machine: Linux namespaces that a bridge joins.

Each host has its own network, loopback, host name, mounts and /etc/hosts. All see the machine's
files, except below `/var/lib` and `/mnt`, where hosts have other files. The hosts need Linux,
iproute2 and util-linux; they run as root, or as a user who may create user namespaces.

The machine itself is not on the network, so programs that connect to a host run on a host
(`VirtualHost.call`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.services.process import ServiceProcess
from tests.services.service import Needs, Service, ServiceError, require
from tests.services.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
_SUBNET = "10.77.0"
NEEDS = Needs(programs=("ip", "unshare", "nsenter", "mount"))
_BRIDGE = "switch"
_DEADLINE_S = 20.0
_COMMAND_DEADLINE_S = 120.0
_LATE_S = 30.0  # so that a process that waits can first report what it waits for
_SET_HOST_NAME = "import socket, sys; socket.sethostname(sys.argv[1])"

T = TypeVar("T")


class HostCommandError(AssertionError):
    """A program on a host failed; the message contains its output."""


class VirtualHost:
    """One host. Not thread-safe.

    `dns_name` is in every host's /etc/hosts. `host_name` is in none, as in clouds.
    """

    def __init__(self, number: int, directory: Path, *, mounts: Mapping[str, Path]) -> None:
        self.number = number
        self.dns_name = f"broker{number}"
        self.address = f"{_SUBNET}.{number}"
        self.host_name = f"ip-{self.address.replace('.', '-')}"
        self.directory = directory
        self._mounts = dict(mounts)
        self._namespaces: _Namespaces | None = None

    def outside(self, path: str) -> Path:
        """Return the machine's path of the file that this host sees as `path`."""
        for mount, source in self._mounts.items():
            if Path(path).is_relative_to(mount):
                return source / Path(path).relative_to(mount)
        return Path(path)

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs `arguments` on this host, in the checkout."""
        if self._namespaces is None:
            raise RuntimeError(f"host {self.number} was not started")
        return [*self._namespaces.entering(), "env", "-C", str(CHECKOUT), *arguments]

    def run(
        self, *arguments: str, deadline_s: float = _COMMAND_DEADLINE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on this host to its end. Raises HostCommandError past the deadline."""
        try:
            return subprocess.run(
                self.command(*arguments),
                capture_output=True,
                text=True,
                timeout=deadline_s,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as late:
            shown = " ".join(arguments)
            raise HostCommandError(
                f"not within {deadline_s} s: {shown}\n{late.stdout!r}\n{late.stderr!r}"
            ) from None

    def call(self, function: Callable[..., T], **values: Any) -> T:
        """Call a function of a module in a process on this host; arguments and result are JSON.

        A function that waits takes a `deadline_s`. Raises HostCommandError if the function raises.
        """
        name = f"{function.__module__}:{function.__qualname__}"
        deadline_s = values.get("deadline_s", _COMMAND_DEADLINE_S) + _LATE_S
        module = (sys.executable, "-m", "tests.hosts.on_host")
        done = self.run(*module, name, json.dumps(values), deadline_s=deadline_s)
        if done.returncode != 0:
            raise HostCommandError(f"{name} on {self.dns_name}:\n{done.stdout}{done.stderr}")
        result: T = json.loads(done.stdout.splitlines()[-1])
        return result

    def start(self, switch: _Namespaces, hosts_file: Path) -> None:
        """Create the host and connect it to the switch."""
        self._namespaces = namespaces = _Namespaces(self.directory / "host.log", sharing=switch)
        port = _port(self.number)
        switch.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
                   str(namespaces.pid))  # fmt: skip
        switch.run("ip", "link", "set", port, "master", _BRIDGE, "up")
        namespaces.run(sys.executable, "-c", _SET_HOST_NAME, self.host_name)
        namespaces.run("ip", "link", "set", "lo", "up")
        namespaces.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        namespaces.run("ip", "link", "set", "eth0", "up")
        for mount, source in {**self._mounts, "/etc/hosts": hosts_file}.items():
            namespaces.run("mount", "--bind", str(source), mount)

    def stop(self) -> None:
        """End the host; programs that still run on it lose its network."""
        if self._namespaces is not None:
            self._namespaces.close()


class HostNetwork(Service):
    """Hosts numbered from 1, on one switch. Not thread-safe.

    All share `/mnt`; each has its own `/var/lib`.
    """

    def __init__(self, directory: Path, *, hosts: int) -> None:
        shared = directory / "mnt"
        _refuse_hidden(directory, "/mnt", "/var/lib")
        self._directory = directory
        self._switch: _Namespaces | None = None
        self.hosts = tuple(
            VirtualHost(
                number,
                directory / f"host-{number}",
                mounts={"/mnt": shared, "/var/lib": directory / f"host-{number}" / "var-lib"},
            )
            for number in range(1, hosts + 1)
        )
        for host in self.hosts:
            for mount in ("/mnt", "/var/lib"):
                host.outside(mount).mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        require([NEEDS])
        hosts_file = self._directory / "hosts"
        lines = ("127.0.0.1 localhost", *(f"{h.address} {h.dns_name}" for h in self.hosts))
        hosts_file.write_text("\n".join(lines) + "\n")
        try:
            self._switch = _Namespaces(self._directory / "switch.log")
            self._switch.run("ip", "link", "add", _BRIDGE, "type", "bridge")
            self._switch.run("ip", "link", "set", _BRIDGE, "up")
            for host in self.hosts:
                host.start(self._switch, hosts_file)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for host in self.hosts:
            host.stop()
        if self._switch is not None:
            self._switch.close()

    def disconnect(self, host: VirtualHost) -> None:
        """Take the host's link down until `connect`."""
        self._set_link(host, "down")

    def connect(self, host: VirtualHost) -> None:
        """Bring the host's link up again."""
        self._set_link(host, "up")

    @contextmanager
    def without(self, host: VirtualHost) -> Iterator[None]:
        """Cut a host off from all others until the block ends."""
        self.disconnect(host)
        try:
            yield
        finally:
            self.connect(host)

    def _set_link(self, host: VirtualHost, state: str) -> None:
        assert self._switch is not None
        self._switch.run("ip", "link", "set", _port(host.number), state)


class _Namespaces:
    """A process that holds namespaces open: network, mounts, host name, and users if not root."""

    def __init__(self, log_path: Path, *, sharing: _Namespaces | None = None) -> None:
        """With `sharing`, the user namespace is the one of those namespaces."""
        self._is_root = os.geteuid() == 0
        needs_user = sharing is None and not self._is_root
        user = ("--user", "--map-root-user") if needs_user else ()
        entering = () if sharing is None else sharing.entering()
        self._process = ServiceProcess(
            [*entering, "unshare", *user, "--net", "--mount", "--uts", "sleep", "infinity"],
            log_path=log_path,
        )
        try:
            wait_until(self._is_there, _DEADLINE_S, self._process.log_tail)
        except AssertionError as late:
            raise ServiceError(f"cannot create a host: {late}. {_ADVICE}") from None

    @property
    def pid(self) -> int:
        """Return the id of the process that keeps the namespaces alive."""
        return self._process.pid

    def entering(self) -> list[str]:
        """Return the beginning of a command that runs in the namespaces."""
        user = () if self._is_root else ("--user", "--preserve-credentials")
        return ["nsenter", "--target", str(self.pid), *user, "--net", "--mount", "--uts"]

    def run(self, *arguments: str) -> None:
        """Run a program in the namespaces. Raises ServiceError if it fails."""
        done = subprocess.run(
            [*self.entering(), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
        if done.returncode != 0:
            raise ServiceError(f"{' '.join(arguments)} failed: {done.stderr.strip()}. {_ADVICE}")

    def close(self) -> None:
        """Release the namespaces, once no other process runs in them."""
        self._process.kill()

    def _is_there(self) -> bool:
        if (code := self._process.exit_code()) is not None:
            raise ServiceError(
                f"unshare ended with {code}: {self._process.log_tail().strip()}. {_ADVICE}"
            )
        words = Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0")
        return words[0] == b"sleep"


_ADVICE = "Network namespaces need root, or a kernel that lets users create user namespaces."


def _port(number: int) -> str:
    """Return the switch's end of a host's link."""
    return f"port{number}"


def _refuse_hidden(directory: Path, *mounts: str) -> None:
    """Refuse paths below these directories: hosts have their own files there."""
    needed = (directory, CHECKOUT, Path(tempfile.gettempdir()), Path(sys.base_prefix))
    for mount in mounts:
        for path in needed:
            if path.resolve().is_relative_to(mount):
                raise ServiceError(f"hosts cannot see {path}: they have their own {mount}")
