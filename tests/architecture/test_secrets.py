"""No file that could be committed holds a credential: the forms that providers give theirs.

The rules are those of gitleaks and detect-secrets for tokens with a fixed form. Rules by entropy
are left out: checksums, ids and golden files of this checkout look like secrets to them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.tree import CHECKOUT, repository_files, text_of

_ITSELF = Path(__file__).resolve()
_RULES = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/]",
    "an access key of AWS": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "a secret key of AWS": r"(?i)aws_secret_access_key\s*[=:]\s*[\"']?[A-Za-z0-9+/]{40}\b",
    "a key of an Azure account": r"AccountKey=[A-Za-z0-9+/]{86}==",
    "a shared access signature of Azure": r"[?&]sig=[A-Za-z0-9%]{43,}%3D",
    "a key of Google's APIs": r"\bAIza[\w-]{35}\b",
    "a service account of Google": r"\"private_key_id\"\s*:\s*\"[0-9a-f]{40}\"",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{82})\b",
    "a token of GitLab": r"\bglpat-[\w-]{20}\b",
    "a token of Slack": r"\bxox[abposr]-[\w-]{10,}",
    "a token of a package registry": r"\b(?:pypi-AgE[\w-]{50,}|npm_[A-Za-z0-9]{36})\b",
    "a JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
}
_EXAMPLES = {
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "an access key of AWS": "AKIA" + "ABCDEFGHIJKLMNOP",
    "a secret key of AWS": "aws_secret_access_key = " + "a1B2" * 10,
    "a key of an Azure account": "AccountKey=" + "a" * 86 + "==",
    "a shared access signature of Azure": "https://x/y?sv=1&sig=" + "a" * 43 + "%3D",
    "a key of Google's APIs": "AIza" + "a" * 35,
    "a service account of Google": '"private_key_id": "' + "0" * 40 + '"',
    "a token of GitHub": "ghp_" + "a" * 36,
    "a token of GitLab": "glpat-" + "a" * 20,
    "a token of Slack": "xoxb-1234567890",
    "a token of a package registry": "npm_" + "a" * 36,
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
}


@pytest.mark.parametrize("what", _RULES)
def test_any_file_when_searched_then_holds_no_credential(what: str) -> None:
    rule = re.compile(_RULES[what])

    found = [
        path.relative_to(CHECKOUT).as_posix()
        for path in repository_files()
        if path != _ITSELF and rule.search(text_of(path))
    ]
    assert found == []


@pytest.mark.parametrize("what", _RULES)
def test_rule_when_it_meets_such_a_credential_then_finds_it(what: str) -> None:
    assert re.search(_RULES[what], _EXAMPLES[what])
