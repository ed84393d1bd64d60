"""`rlm storage check`, which needs no cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def check(store: Path, *options: str) -> subprocess.CompletedProcess[str]:
    config = store.with_name("rlm.properties")
    config.write_text(
        f"bootstrap.servers=localhost:1\nrsm.config.storage.filesystem.root={store}\n"
        "rsm.config.key.prefix=kafka\n"
    )
    return check_of(config, *options)


def check_of(config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlm", "storage", "check", "--config", str(config), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_storage_check_when_store_is_good_then_says_so_and_leaves_nothing(store: Path) -> None:
    done = check(store, "--json")

    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert (document["backend"], document["ok"]) == ("filesystem", True)
    assert {step["result"] for step in document["steps"]} == {"ok"}
    assert [path for path in store.rglob("*") if path.is_file()] == []


def test_storage_check_when_store_cannot_be_written_then_fails_and_names_the_verb(
    store: Path,
) -> None:
    (store / "kafka").write_text("a file where the prefix is to be")

    done = check(store)

    assert done.returncode == 1
    (line,) = [each for each in done.stdout.splitlines() if "small object" in each]
    assert "failed" in line
    assert done.stderr == ""


def test_storage_check_when_the_store_answers_in_brackets_then_they_are_shown(
    tmp_path: Path,
) -> None:
    """The S3 client's error for such a bucket has a regular expression that looks like markup."""
    config = tmp_path / "rlm.properties"
    config.write_text(
        "bootstrap.servers=localhost:1\nrsm.config.storage.backend=s3\n"
        "rsm.config.storage.s3.bucket.name=No bucket\nrsm.config.storage.s3.region=eu-north-1\n"
    )

    done = check_of(config)

    assert done.returncode == 1
    assert "[/:]" in done.stdout
    assert done.stderr == ""
