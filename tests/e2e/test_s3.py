"""A topic is tiered to S3 by the processes as a user starts them, and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.s3_store import s3_store
from tests.e2e.tiered_log import TieredLog
from tests.services.ports import free_ports
from tests.services.s3 import ACCESS_KEY, SECRET_KEY, S3Server, credentials_environment
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file in which processes look for credentials; it does not exist yet."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    path = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    return path


def _write_credentials(path: Path, secret: str) -> None:
    path.write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {secret}\n"
    )


def test_run_when_store_is_s3_then_recovers_from_wrong_credentials_and_tiers_a_topic(
    host: BrokerHost, log: TieredLog, s3_server: S3Server, credentials: Path, tmp_path: Path
) -> None:
    """Scenarios 97 and 116: one clear error, nothing trimmed, and no restart needed."""
    (port,) = free_ports(1)
    host.set(
        **{
            "gateway.listener": f"127.0.0.1:{port}",
            "rsm.config.fetch.chunk.cache.path": str(tmp_path / "chunks"),
            **s3_store(s3_server),
        }
    )
    _write_credentials(credentials, "expired")
    with host.metadata() as metadata:
        log.set_policy(metadata)
        log.produce(3)
        end_offset = log.base_offsets()[-1]
        with host.running():
            reasons = wait_until(lambda: _reasons(host, "credentials"), _DEADLINE_S, "a reason")
            assert len(reasons) == 1
            assert host.metrics("rlm_bucket_accessible") == {"manager": 0.0}
            assert log.local_start_offset() == 0

            _write_credentials(credentials, SECRET_KEY)

            host.wait_ready()
            assert host.metrics("rlm_bucket_accessible") == {"manager": 1.0}
            log.wait_tiered(metadata)
            assert log.local_start_offset() > 0
            assert read_all(f"127.0.0.1:{port}", log.topic)[: end_offset + 1] == list(
                range(end_offset + 1)
            )
            assert list((tmp_path / "chunks" / "worker-1").iterdir())
            assert _requests(host, "put_object")["manager"] >= 6  # two objects a segment
            assert _requests(host, "get_object")["gateway"] >= 1


def _requests(host: BrokerHost, operation: str) -> dict[str, float]:
    return host.metrics("rlm_store_http_requests_total", operation=operation)


def _reasons(host: BrokerHost, word: str) -> list[str]:
    return [reason for reason in host.readiness()[1] if word in reason]
