"""Leases that one process hands over, by a real socket, to the keeper of another."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_tools.leases.keeper import LeaseKeeper, kept_leases
from spark_tools.leases.renewal import LeaseRenewal
from tests.services.waiting import wait_until
from tests.unit.spark_tools.leases.test_renewal import TOPIC, Written, lease


class Application:
    """`works`: whether a job of it runs."""

    works = False

    def has_work(self) -> bool:
        return self.works


@contextmanager
def keeper(written: Written, application: Application, *, idle_s: float) -> Iterator[LeaseKeeper]:
    renewal = LeaseRenewal("spark:a", opened=written.open)
    made = LeaseKeeper(renewal, application.has_work, idle_s=idle_s)
    try:
        yield made
    finally:
        made.close()


def test_leases_when_handed_over_then_renewed_while_the_application_works() -> None:
    written, application = Written(), Application()
    application.works = True
    with keeper(written, application, idle_s=0.1) as made:
        with kept_leases(made.address) as leases:
            assert leases.holder == "spark:a"
            leases.hold(TOPIC, lease(duration_ms=600))
        wait_until(lambda: len(written.leases()) >= 3, describe="two renewals and more")
        assert None not in written.leases()

        application.works = False

        wait_until(lambda: None in written.leases(), describe="the lease's end")


def test_leases_when_nothing_has_run_yet_then_kept_for_a_while() -> None:
    """A query's first job begins after it was planned."""
    written = Written()
    with keeper(written, Application(), idle_s=60) as made:
        with kept_leases(made.address) as leases:
            leases.hold(TOPIC, lease(duration_ms=600))
        wait_until(written.leases, describe="a renewal")
        assert None not in written.leases()
    assert written.leases()[-1] is None


def test_leases_when_another_query_is_being_planned_then_none_is_released() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=0) as made:
        with kept_leases(made.address) as leases:
            leases.hold(TOPIC, lease(duration_ms=600))
            wait_until(lambda: len(written.leases()) >= 2, describe="two renewals")
            assert None not in written.leases()
        wait_until(lambda: None in written.leases(), describe="the lease's end")


def test_leases_when_the_keeper_is_gone_then_a_plan_continues_without() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=60) as made:
        address = made.address
        with kept_leases(address) as leases:
            made.close()
            leases.hold(TOPIC, lease(duration_ms=60_000))
    assert not Path(address).parent.exists()
    with kept_leases(address) as leases:
        leases.hold(TOPIC, lease(duration_ms=60_000))
        assert leases.holder.startswith("spark:")
    with kept_leases(None) as leases:
        assert leases.holder.startswith("spark:")


def test_socket_when_made_then_only_its_user_can_reach_it() -> None:
    with keeper(Written(), Application(), idle_s=60) as made:
        mode = stat.S_IMODE(Path(made.address).parent.stat().st_mode)
    assert mode == stat.S_IRWXU
