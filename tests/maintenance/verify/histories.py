"""A ledger with a history, for tests of verification."""

from service.ledger.model.views import Principal
from service.query.keys import Key
from service.workflows.individual import lowering
from service.workflows.replica import Replica
from tests.factories import analyst, ask, register, upload
from tests.workflows.surveys import writer_of

HALF = 2**38
"""Half of the budget of 0.5 rho, in units."""


def history(replica: Replica) -> Principal:
    """Three individuals, one with a lowered limit and one erased; three entries and a reused answer."""
    register(replica)
    upload(replica, "people", [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)])
    writer_of(replica).act(lowering(Key("bob"), stated_units=HALF, reserve_units=0))
    who = analyst(replica)
    ask(replica, who, "a", reuse=False)
    ask(replica, who, "b", noise={"sigma": 5.0})
    ask(replica, who, "b2", noise={"sigma": 5.0})
    replica.curators.erase_individual("survey", "eve")
    replica.curators.open_epoch("survey")
    ask(replica, who, "c", noise={"sigma": 5.0})
    return who
