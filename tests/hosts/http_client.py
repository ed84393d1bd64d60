"""What tests ask over HTTP, on a host: see `VirtualHost.call`. Imports little, for it is polled."""

from __future__ import annotations

import urllib.error
import urllib.request

from tests.services.waiting import wait_until

_TIMEOUT_S = 5.0


def get(url: str) -> tuple[int, str]:
    """Status and body; status 0 with the reason if nothing answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def wait_status(url: str, status: int, deadline_s: float, text: str = "") -> str:
    """Wait until the answer has this status and its body holds a text; its body."""
    last = (0, "not asked")

    def answers() -> bool:
        nonlocal last
        last = get(url)
        return last[0] == status and text in last[1]

    what = f"{url}: wanted {status} {text}"
    wait_until(answers, deadline_s, lambda: f"{what}, last {last}", interval_s=0.2)
    return last[1]
