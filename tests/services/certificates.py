"""Keys and certificates for tests, made by openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.services.service import Needs, program

NEEDS = Needs(programs=("openssl",))
_KEY_KIND = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
_DAYS = ("-days", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A key and its certificate; `keystore` is one file with both, as Kafka's PEM stores are."""

    key: Path
    certificate: Path
    keystore: Path


class CertificateAuthority:
    """Signs certificates; clients trust `certificate`."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = directory / f"{name}.key"
        self.certificate = directory / f"{name}.crt"
        openssl(
            *("req", "-x509", *_KEY_KIND, "-nodes", *_DAYS, "-subj", f"/CN={name}"),
            *("-addext", "keyUsage=keyCertSign"),
            *("-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def issue(
        self,
        name: str,
        *,
        subject_alternative: str = "IP:127.0.0.1",
        password: str | None = None,
        file_name: str | None = None,
    ) -> Certificate:
        """Return a certificate of /CN=`name`, its key encrypted if there is a password.

        A second call for a `file_name` replaces its files.
        """
        stem = self._directory / (file_name or name)
        made = Certificate(
            key=stem.with_suffix(".key"),
            certificate=stem.with_suffix(".crt"),
            keystore=stem.with_suffix(".pem"),
        )
        protection = ("-nodes",) if password is None else ("-passout", f"pass:{password}")
        openssl(
            *("req", "-x509", *_KEY_KIND, *protection, *_DAYS, "-subj", f"/CN={name}"),
            *("-CA", str(self.certificate), "-CAkey", str(self._key)),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-addext", "keyUsage=digitalSignature"),
            *("-addext", f"subjectAltName={subject_alternative}"),
            *("-keyout", str(made.key), "-out", str(made.certificate)),
        )
        made.keystore.write_text(made.key.read_text() + made.certificate.read_text())
        return made


def openssl(*arguments: str) -> None:
    """Run openssl. Raises ServiceMissingError if openssl is missing, AssertionError if it fails."""
    command = [program("openssl"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)
    assert done.returncode == 0, done.stderr
