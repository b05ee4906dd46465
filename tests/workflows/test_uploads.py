"""Refused uploads change nothing, in the database or in memory."""

import pytest

from service.testing.store import MemoryStore
from service.workflows.maintenance.verify.report import verify_all
from service.workflows.model.errors import InvalidRequest
from tests.factories import PEOPLE, VISITS, analyst, ask, open_replica, register, upload


def test_a_refused_upload_leaves_no_individual_in_memory() -> None:
    """Individuals known by their events alone, one of them with too many rows: none is present afterwards."""
    store = MemoryStore()
    with open_replica(store) as replica:
        visits = VISITS | {"unknown_individuals": "create", "rows_per_individual": 2}
        register(replica, tables={"people": PEOPLE, "visits": visits})
        upload(replica, "people", [("ann", "NO", 44, 1)])
        upload(replica, "visits", [("ann", 1)])
        for rows in ([("bob", 1), ("bob", 2), ("bob", 3)], [("eve", 1), ("ann", 1), ("ann", 2)]):
            with pytest.raises(InvalidRequest):
                upload(replica, "visits", rows)
        ask(replica, analyst(replica), "k")
        assert replica.auditors.ledger("survey", cursor=None, limit=1).items[0].charged == 1
        upload(replica, "visits", [("bob", 1), ("bob", 2), ("ann", 2)])
        ask(replica, analyst(replica), "l", reuse=False)
        assert replica.auditors.ledger("survey", cursor=None, limit=1).items[0].charged == 2
    assert [report.findings for report in verify_all(store)] == [[]]


def test_a_table_takes_no_more_rows_than_its_capacity() -> None:
    """Stored rows count, an upload is refused as a whole, and an erasure frees its rows."""
    with open_replica() as replica:
        visits = VISITS | {"unknown_individuals": "create", "rows_capacity": 4}
        register(replica, tables={"people": PEOPLE, "visits": visits})
        upload(replica, "visits", [("ann", 1), ("ann", 2), ("bob", 3)])
        with pytest.raises(InvalidRequest) as refused:
            upload(replica, "visits", [("eve", 1), ("ann", 1)])
        (problem,) = refused.value.errors
        assert problem.field == "rows"
        assert problem.message == "the table has room for 4 rows and holds 3; these are 2 more"
        upload(replica, "visits", [("bob", 1)])
        with pytest.raises(InvalidRequest, match="holds 4; these are 1 more"):
            upload(replica, "visits", [("bob", 2)])
        replica.curators.erase_individual("survey", "ann")
        upload(replica, "visits", [("eve", 1), ("bob", 2)])
        ask(replica, analyst(replica), "k")
        assert replica.auditors.ledger("survey", cursor=None, limit=1).items[0].charged == 2


def test_a_table_that_declares_no_capacity_has_room_for_32_rows_for_each_individual() -> None:
    """The bound is 32 times the capacity, independently of `rows_per_individual`."""
    with open_replica() as replica:
        visits = VISITS | {"unknown_individuals": "create", "rows_per_individual": 100}
        register(replica, tables={"people": PEOPLE, "visits": visits}, capacity=2)
        upload(replica, "visits", [("ann", 1)] * 63)
        with pytest.raises(InvalidRequest, match="the table has room for 64 rows and holds 63; these are 2 more"):
            upload(replica, "visits", [("bob", 1)] * 2)
        upload(replica, "visits", [("bob", 1)])
