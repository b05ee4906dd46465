"""A filter that halts for all at once: an analyst whose allowance is the smallest limit of the dataset.

Nothing halts in the service by itself: a query is answered from those who can pay. Feldman and Zrnic 2021, Algorithm 1,
and Koskela, Tobaben and Honkela 2023, Algorithm 2, decide by the worst case of a query and halt before one that does
not fit. So does the allowance of the only analyst.
"""

from decimal import Decimal

import orjson
import pytest

from service.ledger.model.errors import AllowanceExceeded
from tests.factories import THREE_PEOPLE, analyst, ask, values
from tests.workflows.surveys import NORWAY, counts_of, surveyed


def test_an_allowance_of_the_floor_halts_before_anyone_is_left_out() -> None:
    """Four counts at 1/8 each within 1/2, equality included, chosen by the answers; then none that costs anything.

    A query that does not fit may be changed for one that does, as the paper remarks after its Lemma 4.2.
    """
    with surveyed(people=THREE_PEOPLE, guarantee={"rho": "0.5"}) as replica:
        who = analyst(replica, allowance_rho=Decimal("0.5"))
        answers = [ask(replica, who, "0", noise={"sigma": 2})]
        for number in range(1, 4):
            with pytest.raises(AllowanceExceeded):
                ask(replica, who, "too dear", noise={"sigma": 0.99})
            where = NORWAY if values(answers[-1])[0] > 3 else {}
            answers.append(ask(replica, who, str(number), noise={"sigma": 2}, reuse=False, **where))
        for sigma in (2, 1000):
            with pytest.raises(AllowanceExceeded):
                ask(replica, who, "one more", noise={"sigma": sigma}, reuse=False, **NORWAY)
        assert [left_out for _, left_out in counts_of(replica)] == [0] * 4
        assert all(orjson.loads(answer.body)["coverage_certified"] for answer in answers)
        ask(replica, analyst(replica, "eva"), "k", noise={"sigma": 2}, reuse=False)
        assert counts_of(replica)[-1][1] > 0


def test_a_larger_allowance_does_not_halt_in_time() -> None:
    """A quarter more, and the fifth count is answered without those who have nothing left."""
    with surveyed(people=THREE_PEOPLE, guarantee={"rho": "0.5"}) as replica:
        who = analyst(replica, allowance_rho=Decimal("0.625"))
        bodies = [orjson.loads(ask(replica, who, str(n), noise={"sigma": 2}, reuse=False).body) for n in range(5)]
        assert counts_of(replica) == [(3, 0)] * 4 + [(0, 3)]
        assert [body["coverage_certified"] for body in bodies] == [True] * 4 + [False]
