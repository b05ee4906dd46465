"""An exception, and a cut of every connection to the database, at each point of a query's way."""

import pytest

from service.failpoints import POINTS
from tests.faults.breaking import break_at
from tests.faults.scenario import staged


@pytest.mark.parametrize("action", ["raise", "drop"])
def test_what_breaks_is_refused_without_a_word_and_harms_nothing(database_url: str, action: str) -> None:
    """Every key is answered the second time, with what was stored if anything was; no individual is charged twice."""
    with staged(database_url, questions=len(POINTS)) as stage:
        for point in POINTS:
            break_at(stage, point, action)
        history = stage.audit()
    assert len(history.entries) == len(POINTS)
