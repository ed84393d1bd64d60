"""The limits of each of a gateway's processes, and of each connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.load import Config, load_config
from rlm.config.values import UNLIMITED_BYTES_PER_SECOND
from rlm.gateway.app.limits import session_limits, share_of_worker


def _config(directory: Path, **settings: str) -> Config:
    path = directory / "rlm.properties"
    given = {
        "bootstrap.servers": "localhost:9092",
        "log.dirs": str(directory),
        "state.dir": str(directory),
        "rsm.config.storage.filesystem.root": str(directory),
        **settings,
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return load_config(path)


def test_share_when_there_are_several_workers_then_together_they_have_what_is_configured(
    tmp_path: Path,
) -> None:
    settings = {
        "gateway.workers": "2",
        "rsm.config.fetch.chunk.cache.size": "100000000",
        "gateway.max.connections": "5001",
        "remote.log.reader.threads": "10",
        "remote.log.manager.fetch.max.bytes.per.second": "1000",
    }

    config = share_of_worker(_config(tmp_path, **settings))

    assert config.gateway.chunk_cache_bytes == 50_000_000
    assert config.gateway.max_connections == 2_501
    assert config.gateway.reader_thread_count == 5
    assert config.gateway_limits.fetch_bytes_per_second == 500


def test_share_when_the_fetch_rate_is_unlimited_then_each_worker_is_unlimited(
    tmp_path: Path,
) -> None:
    config = share_of_worker(_config(tmp_path, **{"gateway.workers": "2"}))

    assert config.gateway_limits.fetch_bytes_per_second == UNLIMITED_BYTES_PER_SECOND


def test_share_when_there_are_more_workers_than_there_is_then_each_has_one(tmp_path: Path) -> None:
    settings = {"gateway.workers": "8", "remote.log.reader.threads": "3"}

    assert share_of_worker(_config(tmp_path, **settings)).gateway.reader_thread_count == 1


def test_share_when_there_is_one_worker_then_it_has_all(tmp_path: Path) -> None:
    config = _config(tmp_path)

    assert share_of_worker(config) == config


@pytest.mark.parametrize(
    ("given", "age_ms", "logged_in_age_ms"),
    [(None, 100, 0), ("-1", 100, 0), ("0", 0, 0), ("40", 40, 40)],
)
def test_authorization_when_its_age_is_not_set_then_it_depends_on_who_logs_in(
    given: str | None, age_ms: int, logged_in_age_ms: int, tmp_path: Path
) -> None:
    settings = {} if given is None else {"gateway.fetch.authorization.max.age.ms": given}

    limits = session_limits(_config(tmp_path, **settings))

    assert (limits.cached_response_max_age_ms, limits.logged_in_cached_response_max_age_ms) == (
        age_ms,
        logged_in_age_ms,
    )
