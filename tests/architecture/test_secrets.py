"""No file that could be committed holds a credential. tests.containers searches the image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.credential_forms import CREDENTIAL_FORMS, credentials_in
from tests.architecture.tree import CHECKOUT, repository_files, text_of

_ITSELF = Path(__file__).resolve()
_EXAMPLES = {
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "an access key of AWS": "AKIA" + "ABCDEFGHIJKLMNOP",
    "a secret key of AWS": "aws_secret_access_key = " + "a1B2" * 10,
    "a key of an Azure account": "AccountKey=" + "a" * 86 + "==",
    "a shared access signature of Azure": "https://x/y?sv=1&sig=" + "a" * 43 + "%3D",
    "a key of Google's APIs": "AIza" + "a" * 35,
    "a service account of Google": '"private_key_id": "' + "0" * 40 + '"',
    "a token of GitHub": "ghp_" + "a" * 36,
    "a fine-grained token of GitHub": "github_pat_" + "a" * 82,
    "a token of GitLab": "glpat-" + "a" * 20,
    "a token of Slack": "xoxb-1234567890",
    "a token of PyPI": "pypi-AgE" + "a" * 50,
    "a token of npm": "npm_" + "a" * 36,
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
}


@pytest.mark.parametrize("what", CREDENTIAL_FORMS)
def test_any_file_when_searched_then_holds_no_credential(what: str) -> None:
    rule = re.compile(CREDENTIAL_FORMS[what])

    found = [
        path.relative_to(CHECKOUT).as_posix()
        for path in repository_files()
        if path != _ITSELF and rule.search(text_of(path))
    ]
    assert found == []


@pytest.mark.parametrize("what", CREDENTIAL_FORMS)
def test_rule_when_it_meets_such_a_credential_then_finds_it(what: str) -> None:
    assert credentials_in(_EXAMPLES[what].encode()) == (what,)


def test_rule_when_a_token_ends_a_longer_name_then_does_not_count() -> None:
    assert credentials_in(("x" + _EXAMPLES["a token of npm"]).encode()) == ()
