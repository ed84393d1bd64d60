"""HTTP requests of tests, sent on a host: see `VirtualHost.call`. Imports little: it is polled."""

from __future__ import annotations

import time
import urllib.error
import urllib.request

from tests.services.waiting import wait_until

_TIMEOUT_S = 5.0


def get(url: str) -> tuple[int, str]:
    """Return status and body; status 0 with the reason if nothing answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def wait_status(url: str, status: int, deadline_s: float, text: str = "") -> str:
    """Wait for a response with this status and this text in its body; return the body."""
    last = (0, "not asked")

    def answers() -> bool:
        nonlocal last
        last = get(url)
        return last[0] == status and text in last[1]

    what = f"{url}: wanted {status} {text}"
    wait_until(answers, deadline_s, lambda: f"{what}, last {last}", interval_s=0.2)
    return last[1]


def shown_after_s(url: str, text: str, since_s: float, deadline_s: float) -> float:
    """Wait until a response has a text; return when the last request without it was sent.

    `since_s` is of the machine's monotonic clock, and the result is relative to it. A slow machine
    asks less often, but this does not raise the result.
    """
    lacked_s = 0.0
    last = (0, "not asked")

    def shows() -> bool:
        nonlocal lacked_s, last
        asked_s = time.monotonic() - since_s
        last = get(url)
        if text in last[1]:
            return True
        if last[0]:
            lacked_s = asked_s
        return False

    wait_until(shows, deadline_s, lambda: f"{url}: wanted {text}, last {last}", interval_s=0.2)
    return lacked_s


def other_answers(url: str, status: int, until_s: float) -> list[str]:
    """Return responses with another status, up to a time of the machine's monotonic clock."""
    others: list[str] = []

    def is_over() -> bool:
        found = get(url)
        if found[0] != status:
            others.append(f"{found}")
        return time.monotonic() >= until_s

    wait_until(is_over, 600.0, f"{url} until {until_s}", interval_s=0.2)
    return others
