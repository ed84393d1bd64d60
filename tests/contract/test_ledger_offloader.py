"""The contract of the LedgerOffloader, over every chunk storage without a service."""

from __future__ import annotations

from tests.contract.ledger_offloader_contract import LedgerOffloaderContract


class TestLedgerOffloader(LedgerOffloaderContract):
    pass
