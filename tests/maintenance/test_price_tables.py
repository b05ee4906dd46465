"""The prices of Laplace noise are made when a dataset is opened, once for each accounting, off the analyst's way."""

from typing import Any

import pytest

from service.accounting import laplace_prices
from service.accounting.accountings import RenyiAccounting
from service.maintenance.price_tables import PriceTables
from service.query.language import Query
from service.workflows.replica import Replica, ReplicaOptions
from tests.factories import analyst, ask, open_replica, register
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S, until


def laplace(**more: Any) -> Query:
    """A count with Laplace noise."""
    return Query.model_validate(
        {"version": 1, "select": [{"count": {}}], "noise": {"scale": 50}, "mechanism": "laplace"} | more
    )


def opened(replica: Replica, name: str, order: float) -> None:
    """A dataset of one order, which is asked once."""
    register(
        replica, name=name, guarantee={"epsilon": "1", "delta": "1e-5"}, accounting={"kind": "rdp", "order": order}
    )
    replica.registry.writer(replica.registry.record(name)).catch_up()


def test_tables_are_made_when_datasets_are_opened() -> None:
    """In the background, before anybody asks with Laplace noise; two datasets of one order need one table."""
    with open_replica(MemoryStore(), options=ReplicaOptions(background=(PriceTables(),))) as replica:
        made = laplace_prices.renyi_prices.cache_info().misses
        for number, order in enumerate((17.25, 17.5, 17.25)):
            opened(replica, f"d{number}", order)
        until(lambda: laplace_prices.renyi_prices.cache_info().misses == made + 2)
    assert laplace_prices.renyi_prices.cache_info().misses == made + 2


def test_a_table_is_whole() -> None:
    """The numbers that every scale has in common are there too, and only the scale is left to the query."""
    tables = PriceTables()
    prices = RenyiAccounting(order=17.75).laplace_prices
    assert "chords" not in vars(prices)
    tables.do(RenyiAccounting(order=17.75))
    assert {"knots", "chords"} <= set(vars(prices))
    assert tables.title_of(RenyiAccounting(order=17.75)) == "prices of Laplace noise under rdp 17.75"


def test_a_scale_that_is_new_is_priced_off_the_event_loop() -> None:
    """A Gaussian is submitted at once; Laplace noise once this very query has a plan."""
    with open_replica(MemoryStore()) as replica:
        register(replica)
        at_once, query = replica.analysts.submits_at_once, laplace()
        assert not at_once("survey", query)
        ask(replica, analyst(replica), "k")  # opens the dataset
        assert at_once("survey", laplace(mechanism="gaussian", noise={"sigma": 50}))
        assert not at_once("survey", query)
        replica.analysts.submit(analyst(replica, "b"), "survey", "b", query).result(timeout=PATIENCE_S)
        assert at_once("survey", query)
        assert not at_once("survey", laplace(noise={"scale": 51}))


@pytest.mark.parametrize("query", [laplace(), laplace(noise={"scale": 1})])
def test_a_query_of_no_dataset_is_not_submitted_at_once(query: Query) -> None:
    """Its refusal has to look in the store."""
    with open_replica(MemoryStore()) as replica:
        assert not replica.analysts.submits_at_once("nothing", query)
