"""Limits that individuals set for themselves."""

from decimal import Decimal

import pytest

from service.core.charge import rho_of_units
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.views import Principal
from service.workflows.replica import Replica
from tests.factories import TWO_PEOPLE, analyst, ask, individual_named, open_replica, upload
from tests.memory.store import MemoryStore
from tests.workflows.replicas import replicas
from tests.workflows.surveys import counts_of, findings, surveyed

ONE = -(-(2**40) // 18)  # units that one count at sigma 3 costs: 1 / (2 * 3^2), rounded up
REST = rho_of_units(ONE)


def test_a_limit_below_what_is_spent_is_refused_and_changes_nothing(replica: Replica) -> None:
    """The smallest limit allowed is named, in the digits with which it is accepted; a unit less is refused."""
    who, ann = analyst(replica), individual_named(replica, "ann")
    ask(replica, who, "a", reuse=False)
    before, acts = replica.individuals.budgets(ann), replica.curators.acts("survey", cursor=None, limit=9)
    for limit in (Decimal("0.025"), rho_of_units(ONE - 1)):
        with pytest.raises(InvalidRequest) as refused:
            replica.individuals.lower_limit(ann, "survey", limit_rho=limit)
        (error,) = refused.value.errors
        assert (error.field, error.message) == ("limit_rho", f"must be at least {REST}, which is spent already")
    assert replica.individuals.budgets(ann) == before
    assert replica.curators.acts("survey", cursor=None, limit=9) == acts
    after = replica.individuals.lower_limit(ann, "survey", limit_rho=REST)
    assert (after.budget_rho, after.spent_rho, after.remaining_rho) == (str(REST), str(REST), "0")


def test_under_the_drop_rule_a_pause_is_not_for_good_and_being_left_out_is() -> None:
    """Over a restart and a checkpoint, and after an erasure and a return; others go on."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE, rule="drop") as replica:
        who, ann = analyst(replica), individual_named(replica, "ann")
        counts = [counted(replica, who, "a")]
        replica.individuals.lower_limit(ann, "survey", pause=True)
        counts.append(counted(replica, who, "b"))
        replica.individuals.resume(ann, "survey")
        counts.append(counted(replica, who, "c"))
        assert not replica.individuals.budgets(ann)[0].left_out_for_good
        replica.individuals.lower_limit(ann, "survey", limit_rho=Decimal("0.12"))
        counts.append(counted(replica, who, "d"))
        assert counts == [(2, 0), (1, 0), (2, 0), (1, 1)]
        own = replica.individuals.budgets(ann)[0]
        assert (own.left_out_for_good, own.remaining_rho > "0", own.queries_left_out) == (True, True, 1)
    with open_replica(store) as replica:
        assert counted(replica, who, "e", sigma=50.0) == (1, 1)
        replica.curators.erase_individual("survey", "ann")
        assert counted(replica, who, "f", sigma=50.0) == (1, 0)
        upload(replica, "people", TWO_PEOPLE[:1])
        assert counted(replica, who, "g", sigma=50.0) == (1, 1)
    assert findings(store) == []


def counted(replica: Replica, who: Principal, key: str, sigma: float = 3.0) -> tuple[int, int]:
    """How many a new count charges, and how many it leaves out."""
    ask(replica, who, key, reuse=False, noise={"sigma": sigma})
    return counts_of(replica)[-1]


def test_what_another_process_has_charged_since_counts() -> None:
    """The limit was large enough when the individual read its account; it is compared under the dataset's lock."""
    with replicas() as world:
        ann = individual_named(world.replicas[0], "ann")
        ask(world.replicas[1], world.analyst, "a", reuse=False)
        (read,) = world.replicas[0].individuals.budgets(ann)
        ask(world.replicas[1], world.analyst, "b", reuse=False)
        with pytest.raises(InvalidRequest, match=str(rho_of_units(2 * ONE))):
            world.replicas[0].individuals.lower_limit(ann, "survey", limit_rho=Decimal(read.spent_rho))
        assert world.replicas[0].individuals.budgets(ann)[0].budget_rho == read.budget_rho
