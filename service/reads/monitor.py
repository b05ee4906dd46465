"""The monitor of a dataset as it is shown: its public terms, and the ticks that were answered."""

from dataclasses import asdict
from math import ldexp

from service.accounting.monitor import Monitor
from service.ledger.model.ledger_entry import PublicEntry
from service.ledger.model.stated_monitor import MonitorFacts, MonitorTicks
from service.ledger.ports.transaction import Transaction


def monitor_facts(monitor: Monitor, transaction: Transaction) -> MonitorFacts:
    """The terms, and how many ticks were asked as of the transaction."""
    asked = transaction.last_tick(up_to=transaction.head.seq)
    return MonitorFacts(
        rho=monitor.rho,
        ticks=monitor.ticks,
        share=monitor.share,
        sigma=monitor.sigma,
        asked=asked,
        ended=transaction.head.is_reconciled or asked >= monitor.ticks,
    )


def monitor_ticks(monitor: Monitor, transaction: Transaction, ticks: list[PublicEntry]) -> MonitorTicks:
    """The terms and the numbers of `ticks`, which are all that were asked as of the transaction."""
    values = tuple(ldexp(int(tick.steps()[0]), tick.grid_log2) for tick in ticks)
    return MonitorTicks(**asdict(monitor_facts(monitor, transaction)), values=values)
