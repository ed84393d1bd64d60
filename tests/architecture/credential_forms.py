"""The forms that providers give their credentials.

The rules are those of gitleaks and detect-secrets for tokens with a fixed form. Rules by entropy
are left out: checksums, ids and golden files of this checkout look like secrets to them.
"""

from __future__ import annotations

import re


def _token(beginning: str, rest: str) -> str:
    """Return the pattern of a token at the start of a word.

    A pattern that begins with fixed text takes a twentieth of the time of one that begins with a
    word boundary.
    """
    return rf"{beginning}(?<=\b{beginning}){rest}"


CREDENTIAL_FORMS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/]",
    "an access key of AWS": _token("A", r"(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}\b"),
    "a secret key of AWS": r"(?i)aws_secret_access_key\s*[=:]\s*[\"']?[A-Za-z0-9+/]{40}\b",
    "a key of an Azure account": r"AccountKey=[A-Za-z0-9+/]{86}==",
    "a shared access signature of Azure": r"sig=(?<=[?&]sig=)[A-Za-z0-9%]{43,}%3D",
    "a key of Google's APIs": _token("AIza", r"[\w-]{35}\b"),
    "a service account of Google": r"\"private_key_id\"\s*:\s*\"[0-9a-f]{40}\"",
    "a token of GitHub": _token("gh", r"[pousr]_[A-Za-z0-9]{36}\b"),
    "a fine-grained token of GitHub": _token("github_pat_", r"\w{82}\b"),
    "a token of GitLab": _token("glpat-", r"[\w-]{20}\b"),
    "a token of Slack": _token("xox", r"[abposr]-[\w-]{10,}"),
    "a token of PyPI": _token("pypi-AgE", r"[\w-]{50,}\b"),
    "a token of npm": _token("npm_", r"[A-Za-z0-9]{36}\b"),
    "a JSON web token": _token("eyJ", r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
}
_IN_BYTES = {what: re.compile(form.encode()) for what, form in CREDENTIAL_FORMS.items()}


def credentials_in(content: bytes) -> tuple[str, ...]:
    """Return which of the forms are in a file's content."""
    return tuple(what for what, form in _IN_BYTES.items() if form.search(content))
