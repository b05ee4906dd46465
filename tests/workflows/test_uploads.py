"""What a refused upload leaves behind: nothing, in the database and in memory."""

import pytest

from service.store.memory.store import MemoryStore
from service.workflows.errors import InvalidRequest
from service.workflows.verifying import verify_all
from tests.houses import PEOPLE, VISITS, analyst, ask, open_house, register, upload


def test_a_refused_upload_leaves_no_ghost_in_memory() -> None:
    """People known by their events alone, one of them with too many rows: nobody of them is there afterwards."""
    store = MemoryStore()
    with open_house(store) as house:
        visits = VISITS | {"unknown_individuals": "create", "rows_per_individual": 2}
        register(house, tables={"people": PEOPLE, "visits": visits})
        upload(house, "people", [("ann", "NO", 44, 1)])
        upload(house, "visits", [("ann", 1)])
        for rows in ([("bob", 1), ("bob", 2), ("bob", 3)], [("eve", 1), ("ann", 1), ("ann", 2)]):
            with pytest.raises(InvalidRequest):
                upload(house, "visits", rows)
        ask(house, analyst(house), "k")
        assert house.ledger("survey", cursor=None, limit=1).items[0].charged == 1
        upload(house, "visits", [("bob", 1), ("bob", 2), ("ann", 2)])
        ask(house, analyst(house), "l", reuse=False)
        assert house.ledger("survey", cursor=None, limit=1).items[0].charged == 2
    assert [report.findings for report in verify_all(store)] == [[]]
