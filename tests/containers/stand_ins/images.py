"""Images that replace the official ones under their own names, from packages and artifacts.

An image is built again only if its base or its content changed: its label has the hash of both.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.services.containers.images import (
    AZURITE,
    FAKE_GCS,
    HADOOP,
    KAFKA,
    PROMETHEUS,
    STORE,
    default_image,
)

_ROOM = Path(__file__).resolve().parent
_BUILD = _ROOM.parents[2] / "build"
_DEBIAN = "localhost/rlm-stand-in-debian"
_MIRROR = "http://deb.debian.org/debian"
_RELEASE = "bookworm"
# Certificates that this machine trusts in addition, such as that of a proxy.
_CERTIFICATES = Path("/usr/local/share/ca-certificates")
_LABEL = "rlm.stand-in.made-of"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """An image, its Dockerfile in this folder, and the other files of its build context."""

    name: str
    dockerfile: str
    context: tuple[Path, ...] = ()


# The first image is the base of the root Dockerfile.
OF_THE_STACK = (
    StandIn(name="docker.io/library/python:3.11.14-slim-bookworm", dockerfile="python.Dockerfile"),
    StandIn(
        name=default_image(STORE),
        dockerfile="versitygw.Dockerfile",
        context=(_BUILD / "versitygw" / "versitygw",),
    ),
    StandIn(
        name=default_image(KAFKA),
        dockerfile="kafka.Dockerfile",
        context=(_BUILD / "kafka" / "jars", _ROOM / "kafka" / "bin", _ROOM / "kafka" / "docker"),
    ),
    StandIn(
        name=default_image(PROMETHEUS),
        dockerfile="prometheus.Dockerfile",
        context=(_BUILD / "prometheus" / "prometheus",),
    ),
)
OF_OTHER_SERVICES = (
    StandIn(
        name=default_image(AZURITE),
        dockerfile="azurite.Dockerfile",
        context=(_BUILD / "azurite" / "node_modules",),
    ),
    StandIn(
        name=default_image(FAKE_GCS),
        dockerfile="fake-gcs.Dockerfile",
        context=(_BUILD / "fake-gcs" / "fake-gcs-server",),
    ),
    StandIn(
        name=default_image(HADOOP),
        dockerfile="hadoop.Dockerfile",
        context=(_BUILD / "hadoop" / "jars", _ROOM / "hadoop" / "bin"),
    ),
)


def build(images: Iterable[StandIn], environment: Mapping[str, str]) -> None:
    """Build the images that are missing or changed, with the engine of `environment`."""
    if _inspected(_DEBIAN, "{{.Id}}", environment) is None:
        _import_debian(environment)
    base = _inspected(_DEBIAN, "{{.Id}}", environment)
    assert base is not None
    for each in images:
        wanted = content_hash(base, _ROOM / each.dockerfile, each.context)
        if _inspected(each.name, f'{{{{index .Labels "{_LABEL}"}}}}', environment) == wanted:
            continue
        print(f"Building a stand-in for {each.name}", flush=True)
        _build(each, wanted, environment)


def _import_debian(environment: Mapping[str, str]) -> None:
    print("Fetching a Debian by debootstrap; this takes some minutes", flush=True)
    with tempfile.TemporaryDirectory(dir=_BUILD / "containers") as directory:
        root = Path(directory) / "root"
        bootstrap = ["debootstrap", "--variant=minbase", "--include=ca-certificates", _RELEASE]
        with (_BUILD / "containers" / "debootstrap.log").open("wb") as log:
            subprocess.run(
                [*bootstrap, str(root), _MIRROR],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if _CERTIFICATES.is_dir():
            shutil.copytree(
                _CERTIFICATES, root / _CERTIFICATES.relative_to("/"), dirs_exist_ok=True
            )
            subprocess.run(
                ["chroot", str(root), "update-ca-certificates"], check=True, capture_output=True
            )
        for cached in (root / "var/cache/apt/archives").glob("*.deb"):
            cached.unlink()
        archive = Path(directory) / "root.tar"
        subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
        _run_quietly(["podman", "import", "--quiet", str(archive), _DEBIAN], environment)


def _build(image: StandIn, content_hash: str, environment: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=_BUILD / "containers") as directory:
        for each in image.context:
            if each.is_dir():
                shutil.copytree(each, Path(directory) / each.name, symlinks=True)
            else:
                shutil.copy2(each, directory)
        command = ["podman", "build", "--quiet", "--tag", image.name, "--label"]
        command += [f"{_LABEL}={content_hash}", "--file", str(_ROOM / image.dockerfile), directory]
        _run_quietly(command, environment)


def _run_quietly(command: list[str], environment: Mapping[str, str]) -> None:
    subprocess.run(
        command,
        check=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _inspected(name: str, form: str, environment: Mapping[str, str]) -> str | None:
    """Return the engine's output for an image and a Go template; None without such an image."""
    inspected = subprocess.run(
        ["podman", "image", "inspect", "--format", form, name],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return inspected.stdout.strip() if inspected.returncode == 0 else None


def content_hash(base: str, dockerfile: Path, context: Iterable[Path]) -> str:
    """Hash all that an image is made of: its base, its Dockerfile, and its context.

    For each file and directory of the context, the hash includes the path, the permissions, and
    the content or the target of a link.
    """
    digest = hashlib.sha256()
    for part in (base.encode(), dockerfile.read_bytes()):
        _add(digest, part)
    for root in context:
        for path in (root, *sorted(root.rglob("*"))):
            _add(digest, str(path.relative_to(root.parent)).encode())
            _add(digest, oct(stat.S_IMODE(path.lstat().st_mode)).encode())
            if path.is_symlink():
                _add(digest, str(path.readlink()).encode())
            elif path.is_file():
                _add(digest, path.read_bytes())
    return digest.hexdigest()


def _add(digest: hashlib._Hash, part: bytes) -> None:
    """Add a part after its length, so that the hash shows where a part ends."""
    digest.update(len(part).to_bytes(8, "big"))
    digest.update(part)
