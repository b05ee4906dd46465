"""The worst case of a preview as an epsilon."""

from decimal import Decimal

import pytest

from service.core.budget import epsilon_of_units
from service.query.parse import parse_query
from tests.factories import analyst, open_replica, register
from tests.memory.store import MemoryStore

HALF = b'{"version":1,"select":[{"count":{}}],"noise":{"share":0.5}}'


@pytest.mark.parametrize("guarantee", [{"epsilon": "2", "delta": "1E-6"}, {"rho": "0.5"}])
def test_the_worst_case_is_an_epsilon_where_a_delta_is_declared(guarantee: dict[str, str]) -> None:
    """Half of the budget promises less than the whole, and is certified like it."""
    with open_replica(MemoryStore()) as replica:
        register(replica, guarantee=guarantee)
        preview = replica.analysts.preview(analyst(replica), "survey", parse_query(HALF))
        budget_units = replica.registry.record("survey").budget_units
    if "rho" in guarantee:
        assert preview.worst_case_epsilon is None
        return
    assert preview.worst_case_epsilon == epsilon_of_units(budget_units // 2, Decimal("1E-6"))
    assert 0.5 < preview.worst_case_epsilon < 2
